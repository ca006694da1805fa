package io.windrow.kafka.streams;

import static java.nio.charset.StandardCharsets.US_ASCII;

import io.windrow.Database;
import io.windrow.Entries;
import io.windrow.Entry;
import io.windrow.KeyRange;
import io.windrow.Keyspace;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Map;
import java.util.Optional;
import java.util.SortedMap;
import java.util.TreeMap;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.utils.Bytes;

/**
 * What a store has on disk, with the keys of its changelog; that of a version is its key and its timestamp. It is read without
 * the store and without a change of its files.
 *
 * @param format what the state of the store says: its kind, and that of its values
 * @param changelog the partition; null if no offset was committed
 * @param offset of the last record of the changelog that the entries contain; negative if there is none
 * @param entries all of them. A version that says that there was no value has null.
 */
public record StoreContents(String format, TopicPartition changelog, long offset, SortedMap<Bytes, Bytes> entries) {
    private static final long NONE = -1;

    /** Reads the database in {@code folder}, while no process has it open. */
    public static StoreContents read(Path folder) {
        try (Database database = Database.openReadOnly(folder, Settings.of(Map.of()).options())) {
            byte[] recorded = database.existingKeyspace("state").map(it -> it.getOrNull("state".getBytes(US_ASCII))).orElse(null);
            Optional<Keyspace> entries = database.existingKeyspace("entries");
            State state = recorded == null ? null : State.fromBytes(recorded);
            String format = state == null ? "" : state.format();
            Map<TopicPartition, Long> offsets = state == null ? Map.of() : state.offsets();
            Map.Entry<TopicPartition, Long> committed = offsets.entrySet().stream().findFirst().orElse(null);
            TopicPartition changelog = committed == null ? null : committed.getKey();
            long offset = committed == null ? NONE : committed.getValue();
            return new StoreContents(format, changelog, offset, read(entries.orElse(null), kind(format)));
        }
    }

    /** {@code key-value}, {@code window}, {@code session} or {@code versioned}. */
    public String kind() {
        return kind(format);
    }

    private static String kind(String format) {
        return format.split(" ", 2)[0];
    }

    private static SortedMap<Bytes, Bytes> read(Keyspace entries, String kind) {
        SortedMap<Bytes, Bytes> found = new TreeMap<>();
        if (entries == null) {
            return found;
        }
        try (Entries all = entries.entries(KeyRange.all())) {
            all.forEachRemaining(it -> add(it, kind, found));
        }
        return found;
    }

    private static void add(Entry entry, String kind, SortedMap<Bytes, Bytes> found) {
        byte[] stored = entry.key();
        byte[] value = entry.value();
        switch (kind) {
            case "window", "session" -> {
                // What begins with a bit is the index by time.
                if (stored[0] >= 0) {
                    found.put(Bytes.wrap(Arrays.copyOfRange(stored, Long.BYTES, stored.length)), Bytes.wrap(value));
                }
            }
            case "versioned" -> {
                int end = stored.length - Long.BYTES;
                long timestamp = ~ByteBuffer.wrap(stored).getLong(end) ^ Long.MIN_VALUE;
                found.put(
                        version(Arrays.copyOfRange(stored, Integer.BYTES, end), timestamp),
                        value[0] == 0 ? null : Bytes.wrap(Arrays.copyOfRange(value, 1, value.length)));
            }
            default -> found.put(Bytes.wrap(Keys.decoded(stored)), Bytes.wrap(value));
        }
    }

    /** The key of a version. */
    public static Bytes version(byte[] key, long timestamp) {
        return Bytes.wrap(ByteBuffer.allocate(key.length + Long.BYTES).put(key).putLong(timestamp).array());
    }
}
