package io.windrow.kafka.streams.endtoend;

import io.windrow.kafka.streams.StoreContents;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Objects;
import java.util.SortedMap;
import java.util.TreeMap;
import java.util.TreeSet;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.state.internals.RecordConverter;
import org.apache.kafka.streams.state.internals.RecordConverters;

/**
 * What the records of a changelog make of a store, by a plain computation: the newest value of each key. What has expired may be
 * there or not.
 */
final class StoreModel {
    private static final int NUMBER_BYTES = Integer.BYTES;

    private final String kind;
    private final RecordConverter converter;
    private final long retention;
    /** As in {@link StoreContents}. */
    private final SortedMap<Bytes, Bytes> entries = new TreeMap<>();
    private long streamTime = -1;

    /** {@code format} is that of {@link StoreContents}. */
    StoreModel(String format, long retention) {
        List<String> words = List.of(format.split(" "));
        this.kind = words.get(0);
        this.retention = retention;
        this.converter = words.contains("HEADERS")
                ? kind.equals("session") ? RecordConverters.rawValueToSessionHeadersValue() : RecordConverters.rawValueToHeadersValue()
                : words.contains("TIMESTAMPED") ? RecordConverters.rawValueToTimestampedValue() : RecordConverters.identity();
    }

    /** Adds the next record of the changelog. */
    void add(ConsumerRecord<byte[], byte[]> record) {
        boolean isVersion = kind.equals("versioned");
        Bytes key = isVersion ? StoreContents.version(record.key(), record.timestamp()) : Bytes.wrap(record.key());
        if (isVersion && record.timestamp() < streamTime - retention) {
            // A store drops what comes too late.
            return;
        }
        streamTime = Math.max(streamTime, time(key));
        byte[] value = converter.convert(record).value();
        if (value == null && !isVersion) {
            entries.remove(key);
        } else {
            entries.put(key, value == null ? null : Bytes.wrap(value));
        }
    }

    /** What differs between a store and its changelog; null if nothing does. */
    String difference(SortedMap<Bytes, Bytes> found) {
        SortedMap<Bytes, List<Bytes>> mayHave = grouped(entries);
        SortedMap<Bytes, List<Bytes>> mustHave = grouped(live(entries));
        SortedMap<Bytes, List<Bytes>> has = grouped(found);
        SortedMap<Bytes, List<Bytes>> hasLive = grouped(live(found));
        TreeSet<Bytes> keys = new TreeSet<>(has.keySet());
        keys.removeIf(it -> has.get(it).equals(mayHave.get(it)));
        TreeSet<Bytes> liveKeys = new TreeSet<>(mustHave.keySet());
        liveKeys.addAll(hasLive.keySet());
        liveKeys.removeIf(it -> Objects.equals(hasLive.get(it), mustHave.get(it)));
        keys.addAll(liveKeys);
        if (keys.isEmpty()) {
            return null;
        }
        Bytes first = keys.first();
        return keys.size() + " of " + has.size() + " keys differ, the first is \"" + first + "\": it has " + has.get(first)
                + ", and its changelog " + mayHave.get(first);
    }

    /** Those that have not expired. */
    private SortedMap<Bytes, Bytes> live(SortedMap<Bytes, Bytes> of) {
        return switch (kind) {
            case "window", "session" -> {
                SortedMap<Bytes, Bytes> live = new TreeMap<>(of);
                live.keySet().removeIf(it -> time(it) <= streamTime - retention);
                yield live;
            }
            case "versioned" -> liveVersions(of);
            default -> of;
        };
    }

    /** A version ends with the next one of its key. One without a value says nothing if nothing is before it. */
    private SortedMap<Bytes, Bytes> liveVersions(SortedMap<Bytes, Bytes> of) {
        SortedMap<Bytes, SortedMap<Long, Bytes>> byKey = new TreeMap<>();
        of.forEach((key, value) -> byKey.computeIfAbsent(withoutEnd(key, Long.BYTES), it -> new TreeMap<>()).put(time(key), value));
        SortedMap<Bytes, Bytes> live = new TreeMap<>();
        long start = streamTime - retention;
        byKey.forEach((key, versions) -> versions.forEach((time, value) -> {
            boolean isFollowed = versions.tailMap(time + 1).keySet().stream().anyMatch(next -> next <= start);
            if (!isFollowed && (value != null || time >= start)) {
                live.put(StoreContents.version(key.get(), time), value);
            }
        }));
        return live;
    }

    /** Kafka gives duplicates other numbers in a changelog than in a store, so they are compared without. */
    private SortedMap<Bytes, List<Bytes>> grouped(SortedMap<Bytes, Bytes> of) {
        SortedMap<Bytes, List<Bytes>> grouped = new TreeMap<>();
        of.forEach((key, value) -> {
            Bytes group = kind.equals("window") ? withoutEnd(key, NUMBER_BYTES) : key;
            grouped.computeIfAbsent(group, it -> new ArrayList<>()).add(value);
        });
        grouped.values().stream().filter(it -> it.size() > 1).forEach(it -> it.sort(null));
        return grouped;
    }

    private long time(Bytes key) {
        ByteBuffer bytes = ByteBuffer.wrap(key.get());
        return switch (kind) {
            case "window" -> bytes.getLong(bytes.limit() - Long.BYTES - NUMBER_BYTES);
            case "session" -> bytes.getLong(bytes.limit() - 2 * Long.BYTES);
            case "versioned" -> bytes.getLong(bytes.limit() - Long.BYTES);
            default -> -1;
        };
    }

    private static Bytes withoutEnd(Bytes key, int bytes) {
        return Bytes.wrap(Arrays.copyOf(key.get(), key.get().length - bytes));
    }
}
