package io.windrow.kafka.streams;

import static org.apache.kafka.streams.state.internals.WindowKeySchema.toStoreKeyBinary;

import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.Objects;
import java.util.function.Predicate;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.DslStoreFormat;
import org.apache.kafka.streams.kstream.Windowed;
import org.apache.kafka.streams.kstream.internals.TimeWindow;
import org.apache.kafka.streams.state.HeadersBytesStore;
import org.apache.kafka.streams.state.KeyValueIterator;
import org.apache.kafka.streams.state.TimestampedBytesStore;
import org.apache.kafka.streams.state.WindowStore;
import org.apache.kafka.streams.state.WindowStoreIterator;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** A store of windows. A key has Kafka's form: the key, the start of the window, and a number for duplicates. */
class WindrowWindowStore extends SegmentedStore implements WindowStore<Bytes, byte[]> {
    /** In the names of metrics. */
    static final String SCOPE = "windrow-window";

    private static final Logger LOG = LoggerFactory.getLogger(WindrowWindowStore.class);
    private static final int SUFFIX_BYTES = Long.BYTES + Integer.BYTES;

    private final long windowSize;
    private final boolean retainsDuplicates;

    private WindrowWindowStore(WindowParameters parameters, DslStoreFormat format) {
        super(parameters.name(), "window " + format, parameters.retention(), parameters.isByTime());
        this.windowSize = parameters.windowSize();
        this.retainsDuplicates = parameters.retainsDuplicates();
    }

    static WindrowWindowStore of(WindowParameters parameters, DslStoreFormat format) {
        return switch (format) {
            case PLAIN -> new WindrowWindowStore(parameters, format);
            case TIMESTAMPED -> new Timestamped(parameters);
            case HEADERS -> new WithHeaders(parameters);
        };
    }

    /** A store whose values have timestamps. */
    private static final class Timestamped extends WindrowWindowStore implements TimestampedBytesStore {
        Timestamped(WindowParameters parameters) {
            super(parameters, DslStoreFormat.TIMESTAMPED);
        }
    }

    /** A store whose values have timestamps and headers. */
    private static final class WithHeaders extends WindrowWindowStore implements TimestampedBytesStore, HeadersBytesStore {
        WithHeaders(WindowParameters parameters) {
            super(parameters, DslStoreFormat.HEADERS);
        }
    }

    @Override
    String metricsScope() {
        return SCOPE;
    }

    @Override
    long timeOf(byte[] key) {
        return ByteBuffer.wrap(key).getLong(key.length - SUFFIX_BYTES);
    }

    @Override
    int sequenceOf(byte[] key) {
        return ByteBuffer.wrap(key).getInt(key.length - Integer.BYTES);
    }

    /** The time comes first in the index, so that the order of keys is enough. */
    @Override
    byte[] ordered(byte[] key) {
        return key;
    }

    @Override
    byte[] unordered(byte[] ordered) {
        return ordered;
    }

    @Override
    public synchronized void put(Bytes key, byte[] value, long windowStart) {
        Objects.requireNonNull(key, "key cannot be null");
        // A delete of duplicates would need all of their numbers.
        if (value == null && retainsDuplicates) {
            return;
        }
        int sequence = retainsDuplicates ? nextSequence() : 0;
        putEntry(toStoreKeyBinary(key, windowStart, sequence).get(), value);
    }

    @Override
    public byte[] fetch(Bytes key, long time) {
        Objects.requireNonNull(key, "key cannot be null");
        return getEntry(toStoreKeyBinary(key, time, retainsDuplicates ? sequence() : 0).get());
    }

    @Override
    public WindowStoreIterator<byte[]> fetch(Bytes key, long timeFrom, long timeTo) {
        return fetch(key, timeFrom, timeTo, true);
    }

    @Override
    public WindowStoreIterator<byte[]> backwardFetch(Bytes key, long timeFrom, long timeTo) {
        return fetch(key, timeFrom, timeTo, false);
    }

    private WindowStoreIterator<byte[]> fetch(Bytes key, long timeFrom, long timeTo, boolean isForward) {
        Objects.requireNonNull(key, "key cannot be null");
        long from = earliest(timeFrom);
        byte[] lower = toStoreKeyBinary(key, Math.max(0, from), 0).get();
        byte[] upper = toStoreKeyBinary(key, timeTo, Integer.MAX_VALUE).get();
        byte[] bytes = key.get();
        Predicate<byte[]> condition = found -> {
            int length = found.length - SUFFIX_BYTES;
            return Arrays.equals(found, 0, length, bytes, 0, bytes.length) && isWithin(timeOf(found), from, timeTo);
        };
        return new WindowIterators.Values(select(from, timeTo, lower, upper, condition, isForward));
    }

    @Override
    public KeyValueIterator<Windowed<Bytes>, byte[]> fetch(Bytes keyFrom, Bytes keyTo, long timeFrom, long timeTo) {
        return fetch(keyFrom, keyTo, timeFrom, timeTo, true);
    }

    @Override
    public KeyValueIterator<Windowed<Bytes>, byte[]> backwardFetch(
            Bytes keyFrom, Bytes keyTo, long timeFrom, long timeTo) {
        return fetch(keyFrom, keyTo, timeFrom, timeTo, false);
    }

    private KeyValueIterator<Windowed<Bytes>, byte[]> fetch(
            Bytes keyFrom, Bytes keyTo, long timeFrom, long timeTo, boolean isForward) {
        if (keyFrom != null && keyTo != null && keyFrom.compareTo(keyTo) > 0) {
            LOG.warn(Ranges.INVALID);
            return Ranges.none();
        }
        long from = earliest(timeFrom);
        KeyValueIterator<Bytes, byte[]> byTime =
                keyFrom == null && keyTo == null ? entriesByTime(from, timeTo, isForward) : null;
        if (byTime != null) {
            return new WindowIterators.Windows(byTime, this::windowed);
        }
        byte[] lower = keyFrom == null ? null : keyFrom.get();
        byte[] suffix = ByteBuffer.allocate(SUFFIX_BYTES).putLong(timeTo).putInt(Integer.MAX_VALUE).array();
        byte[] upper = keyTo == null ? null : Keys.upperBound(keyTo, suffix);
        Predicate<byte[]> condition = found -> {
            int length = found.length - SUFFIX_BYTES;
            return (keyFrom == null || compare(found, length, keyFrom) >= 0)
                    && (keyTo == null || compare(found, length, keyTo) <= 0)
                    && isWithin(timeOf(found), from, timeTo);
        };
        return new WindowIterators.Windows(select(from, timeTo, lower, upper, condition, isForward), this::windowed);
    }

    @Override
    public KeyValueIterator<Windowed<Bytes>, byte[]> all() {
        return fetch(null, null, 0, Long.MAX_VALUE, true);
    }

    @Override
    public KeyValueIterator<Windowed<Bytes>, byte[]> backwardAll() {
        return fetch(null, null, 0, Long.MAX_VALUE, false);
    }

    @Override
    public KeyValueIterator<Windowed<Bytes>, byte[]> fetchAll(long timeFrom, long timeTo) {
        return fetch(null, null, timeFrom, timeTo, true);
    }

    @Override
    public KeyValueIterator<Windowed<Bytes>, byte[]> backwardFetchAll(long timeFrom, long timeTo) {
        return fetch(null, null, timeFrom, timeTo, false);
    }

    private KeyValueIterator<Bytes, byte[]> select(
            long from, long to, byte[] lower, byte[] upper, Predicate<byte[]> condition, boolean isForward) {
        return to < from ? Ranges.none() : entries(from, to, lower, upper, condition, isForward);
    }

    private static boolean isWithin(long time, long from, long to) {
        return time >= from && time <= to;
    }

    private static int compare(byte[] found, int length, Bytes key) {
        return Arrays.compareUnsigned(found, 0, length, key.get(), 0, key.get().length);
    }

    private Windowed<Bytes> windowed(Bytes stored) {
        byte[] bytes = stored.get();
        long start = timeOf(bytes);
        long end = start + windowSize;
        TimeWindow window = new TimeWindow(start, end < 0 ? Long.MAX_VALUE : end);
        return new Windowed<>(Bytes.wrap(Arrays.copyOf(bytes, bytes.length - SUFFIX_BYTES)), window);
    }
}
