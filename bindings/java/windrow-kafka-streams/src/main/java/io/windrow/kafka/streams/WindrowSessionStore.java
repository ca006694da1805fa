package io.windrow.kafka.streams;

import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.Objects;
import java.util.function.Predicate;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.DslStoreFormat;
import org.apache.kafka.streams.kstream.Windowed;
import org.apache.kafka.streams.state.HeadersBytesStore;
import org.apache.kafka.streams.state.KeyValueIterator;
import org.apache.kafka.streams.state.SessionStore;
import org.apache.kafka.streams.state.internals.SessionKeySchema;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** A store of sessions. A key has Kafka's form: the key, the end of the session, and its start. */
class WindrowSessionStore extends SegmentedStore implements SessionStore<Bytes, byte[]> {
    /** In the names of metrics. */
    static final String SCOPE = "windrow-session";

    private static final Logger LOG = LoggerFactory.getLogger(WindrowSessionStore.class);
    private static final int SUFFIX_BYTES = 2 * Long.BYTES;

    private WindrowSessionStore(String name, long retention, boolean isByTime, DslStoreFormat format) {
        super(name, "session " + format, retention, isByTime);
    }

    static WindrowSessionStore of(String name, long retention, boolean isByTime, boolean hasHeaders) {
        return hasHeaders
                ? new WithHeaders(name, retention, isByTime)
                : new WindrowSessionStore(name, retention, isByTime, DslStoreFormat.PLAIN);
    }

    /** A store whose values have headers. */
    private static final class WithHeaders extends WindrowSessionStore implements HeadersBytesStore {
        WithHeaders(String name, long retention, boolean isByTime) {
            super(name, retention, isByTime, DslStoreFormat.HEADERS);
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

    private static long startOf(byte[] key) {
        return ByteBuffer.wrap(key).getLong(key.length - Long.BYTES);
    }

    @Override
    int sequenceOf(byte[] key) {
        return 0;
    }

    /** By end and start, and then by key. The end comes first in the index anyway. */
    @Override
    byte[] ordered(byte[] key) {
        int length = key.length - SUFFIX_BYTES;
        return ByteBuffer.allocate(key.length).put(key, length, SUFFIX_BYTES).put(key, 0, length).array();
    }

    @Override
    byte[] unordered(byte[] ordered) {
        int length = ordered.length - SUFFIX_BYTES;
        return ByteBuffer.allocate(ordered.length).put(ordered, SUFFIX_BYTES, length).put(ordered, 0, SUFFIX_BYTES).array();
    }

    @Override
    public synchronized void put(Windowed<Bytes> session, byte[] aggregate) {
        Objects.requireNonNull(session, "sessionKey cannot be null");
        putEntry(SessionKeySchema.toBinary(session).get(), aggregate);
    }

    @Override
    public synchronized void remove(Windowed<Bytes> session) {
        put(session, null);
    }

    @Override
    public byte[] fetchSession(Bytes key, long sessionStart, long sessionEnd) {
        Objects.requireNonNull(key, "key cannot be null");
        return getEntry(SessionKeySchema.toBinary(key, sessionStart, sessionEnd).get());
    }

    @Override
    public KeyValueIterator<Windowed<Bytes>, byte[]> findSessions(long earliestEnd, long latestEnd) {
        // Whoever wants the results of closed sessions asks when they have just expired.
        KeyValueIterator<Bytes, byte[]> byTime = entriesByTime(earliestEnd, latestEnd, true);
        if (byTime != null) {
            return windows(byTime);
        }
        Predicate<byte[]> condition = found -> timeOf(found) >= earliestEnd && timeOf(found) <= latestEnd;
        return windows(entries(earliestEnd, latestEnd, null, null, condition, true));
    }

    @Override
    public KeyValueIterator<Windowed<Bytes>, byte[]> findSessions(Bytes key, long earliestEnd, long latestStart) {
        return find(key, earliestEnd, latestStart, true);
    }

    @Override
    public KeyValueIterator<Windowed<Bytes>, byte[]> backwardFindSessions(Bytes key, long earliestEnd, long latestStart) {
        return find(key, earliestEnd, latestStart, false);
    }

    private KeyValueIterator<Windowed<Bytes>, byte[]> find(
            Bytes key, long earliestEnd, long latestStart, boolean isForward) {
        Objects.requireNonNull(key, "key cannot be null");
        long from = earliest(earliestEnd);
        byte[] bytes = key.get();
        byte[] lower = bounded(bytes, Math.max(from, 0), 0);
        byte[] upper = bounded(bytes, Long.MAX_VALUE, latestStart);
        Predicate<byte[]> condition = found -> {
            int length = found.length - SUFFIX_BYTES;
            return Arrays.equals(found, 0, length, bytes, 0, bytes.length) && isWithin(found, from, latestStart);
        };
        return windows(entries(from, Long.MAX_VALUE, lower, upper, condition, isForward));
    }

    @Override
    public KeyValueIterator<Windowed<Bytes>, byte[]> findSessions(
            Bytes keyFrom, Bytes keyTo, long earliestEnd, long latestStart) {
        return find(keyFrom, keyTo, earliestEnd, latestStart, true);
    }

    @Override
    public KeyValueIterator<Windowed<Bytes>, byte[]> backwardFindSessions(
            Bytes keyFrom, Bytes keyTo, long earliestEnd, long latestStart) {
        return find(keyFrom, keyTo, earliestEnd, latestStart, false);
    }

    private KeyValueIterator<Windowed<Bytes>, byte[]> find(
            Bytes keyFrom, Bytes keyTo, long earliestEnd, long latestStart, boolean isForward) {
        if (keyFrom != null && keyTo != null && keyFrom.compareTo(keyTo) > 0) {
            LOG.warn(Ranges.INVALID);
            return Ranges.none();
        }
        long from = earliest(earliestEnd);
        byte[] lower = keyFrom == null ? null : keyFrom.get();
        byte[] suffix = bounded(new byte[0], Long.MAX_VALUE, latestStart);
        byte[] upper = keyTo == null ? null : Keys.upperBound(keyTo, suffix);
        Predicate<byte[]> condition = found -> {
            int length = found.length - SUFFIX_BYTES;
            return (keyFrom == null || compare(found, length, keyFrom) >= 0)
                    && (keyTo == null || compare(found, length, keyTo) <= 0)
                    && isWithin(found, from, latestStart);
        };
        return windows(entries(from, Long.MAX_VALUE, lower, upper, condition, isForward));
    }

    @Override
    public KeyValueIterator<Windowed<Bytes>, byte[]> fetch(Bytes key) {
        return find(key, 0, Long.MAX_VALUE, true);
    }

    @Override
    public KeyValueIterator<Windowed<Bytes>, byte[]> backwardFetch(Bytes key) {
        return find(key, 0, Long.MAX_VALUE, false);
    }

    @Override
    public KeyValueIterator<Windowed<Bytes>, byte[]> fetch(Bytes keyFrom, Bytes keyTo) {
        return find(keyFrom, keyTo, 0, Long.MAX_VALUE, true);
    }

    @Override
    public KeyValueIterator<Windowed<Bytes>, byte[]> backwardFetch(Bytes keyFrom, Bytes keyTo) {
        return find(keyFrom, keyTo, 0, Long.MAX_VALUE, false);
    }

    private boolean isWithin(byte[] found, long earliestEnd, long latestStart) {
        return timeOf(found) >= earliestEnd && startOf(found) <= latestStart;
    }

    private static int compare(byte[] found, int length, Bytes key) {
        return Arrays.compareUnsigned(found, 0, length, key.get(), 0, key.get().length);
    }

    private static byte[] bounded(byte[] key, long end, long start) {
        return ByteBuffer.allocate(key.length + SUFFIX_BYTES).put(key).putLong(end).putLong(start).array();
    }

    private static KeyValueIterator<Windowed<Bytes>, byte[]> windows(KeyValueIterator<Bytes, byte[]> entries) {
        return new WindowIterators.Windows(entries, SessionKeySchema::from);
    }
}
