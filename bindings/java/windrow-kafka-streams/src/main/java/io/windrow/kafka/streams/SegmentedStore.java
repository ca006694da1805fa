package io.windrow.kafka.streams;

import io.windrow.Batch;
import io.windrow.Cursor;
import io.windrow.KeyRange;
import io.windrow.Keyspace;
import java.util.Collection;
import java.util.List;
import java.util.function.Predicate;
import java.util.function.Supplier;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.metrics.Sensor;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.processor.StateStore;
import org.apache.kafka.streams.processor.StateStoreContext;
import org.apache.kafka.streams.state.KeyValueIterator;
import org.apache.kafka.streams.state.internals.WrappedStateStore;

/**
 * What stores of windows and sessions have in common: entries with a time, which expire when the time of the stream has
 * passed it by the retention period.
 *
 * <p>A key begins with the number of its segment, which is its time divided by the interval of segments. So one key has its
 * entries side by side within a segment, and what has expired is removed by one delete of a range. As in Kafka's own stores, a
 * write of an entry that has expired is dropped from the next removal on, and reads do not give it before.
 *
 * <p>A store by time, for results that come when a window closes, also has a key for the time of each entry ({@link TimeIndex}).
 */
abstract class SegmentedStore extends AbstractStore {
    /** At least so much time lies between two deletes of what has expired. */
    private static final long REMOVAL_INTERVAL_MIN = 60_000;

    private static final long SEGMENT_INTERVAL_MIN = 60_000;

    private final long retention;
    private final long removalInterval;
    private final boolean isByTime;
    /** Whether a cache of Kafka is in front of this store: it wants the order of segments and keys. */
    private boolean isCached;
    /** That with which the store was created. */
    private long interval;
    /** Written with the lock of the store, and read by queries of other threads. */
    private volatile long streamTime;
    /** As {@code streamTime}. */
    private volatile int sequence;
    /** Entries with an earlier time are removed. */
    private long removedBefore;
    private Sensor expiredRecords;

    SegmentedStore(String name, String format, long retention, boolean isByTime) {
        super(name, format + (isByTime ? " by time" : ""), segmentInterval(retention));
        this.retention = retention;
        this.isByTime = isByTime;
        this.removalInterval = Math.max(retention / 2, REMOVAL_INTERVAL_MIN);
    }

    /** The interval of the segments of a new store. */
    static long segmentInterval(long retention) {
        return Math.max(retention / 2, SEGMENT_INTERVAL_MIN);
    }

    @Override
    public void init(StateStoreContext context, StateStore root) {
        expiredRecords = Metrics.droppedRecords(context);
        isCached = false;
        StateStore outer = root;
        while (outer instanceof WrappedStateStore<?, ?, ?> wrapping) {
            // The class is not public.
            isCached |= outer.getClass().getSimpleName().equals("CachingWindowStore");
            outer = wrapping.wrapped();
        }
        super.init(context, root);
    }

    @Override
    void opened(State state) {
        interval = state.interval();
        streamTime = state.streamTime();
        sequence = state.sequence();
        // The write that has reached this time has removed what expired by it.
        removedBefore = liveFrom();
    }

    @Override
    final long streamTime() {
        return streamTime;
    }

    @Override
    final int sequence() {
        return sequence;
    }

    /** The next number that makes the key of a duplicate unique. The caller has the lock of the store. */
    final int nextSequence() {
        int next = (sequence + 1) & Integer.MAX_VALUE;
        sequence = next;
        return next;
    }

    /** The time of a key without its segment. */
    abstract long timeOf(byte[] key);

    /** The number that makes the key of a duplicate unique, or 0. */
    abstract int sequenceOf(byte[] key);

    final void putEntry(byte[] key, byte[] value) {
        beforeWrite();
        long time = timeOf(key);
        streamTime = Math.max(streamTime, time);
        if (time < liveFrom()) {
            drop();
            expiredRecords.record(1.0, Metrics.now(context()));
            return;
        }
        write(() -> {
            database().put(stored(time, key), value);
            if (isByTime) {
                database().put(TimeIndex.key(time, ordered(key)), value == null ? null : TimeIndex.VALUE);
            }
            removeExpired();
        });
    }

    final byte[] getEntry(byte[] key) {
        long time = timeOf(key);
        Keyspace entries = readable();
        if (entries == null || time < earliest(0)) {
            return null;
        }
        return call(() -> entries.getOrNull(stored(time, key)));
    }

    @Override
    void restoring(Collection<ConsumerRecord<byte[], byte[]>> records, Batch batch, Keyspace entries) {
        for (ConsumerRecord<byte[], byte[]> record : records) {
            streamTime = Math.max(streamTime, timeOf(record.key()));
            sequence = Math.max(sequence, sequenceOf(record.key()));
        }
    }

    @Override
    void restore(ConsumerRecord<byte[], byte[]> record, Batch batch, Keyspace entries) {
        long time = timeOf(record.key());
        if (time < liveFrom()) {
            return;
        }
        Keys.add(batch, entries, stored(time, record.key()), record.value());
        if (isByTime) {
            byte[] key = TimeIndex.key(time, ordered(record.key()));
            Keys.add(batch, entries, key, record.value() == null ? null : TimeIndex.VALUE);
        }
        long minimum = liveFrom();
        if (minimum > removedBefore) {
            expired(minimum).forEach(range -> batch.deleteRange(entries, range));
            removedBefore = minimum;
        }
    }

    /** The first time that has not expired, if it is later than {@code from}. */
    final long earliest(long from) {
        return Math.max(from, streamTime - retention + (keepsLast() ? 0 : 1));
    }

    /** Whether entries are given that are exactly as old as the retention: those of a window that closes now. */
    abstract boolean keepsLast();

    final boolean isByTime() {
        return isByTime;
    }

    /** The entries of the segments of these times with keys between both bounds, null for none, that meet a condition. */
    final KeyValueIterator<Bytes, byte[]> entries(
            long from, long to, byte[] lower, byte[] upper, Predicate<byte[]> condition, boolean isForward) {
        long first = segment(Math.max(from, 0));
        long last = segment(to);
        KeyRange range = KeyRange.between(Keys.segment(first), Keys.segment(last + 1));
        Supplier<Cursor> opening = () -> {
            Keyspace entries = readable();
            return entries == null ? null : entries.cursor(range);
        };
        return new SegmentIterator(this, opening, first, last, lower, upper, condition, isForward);
    }

    /**
     * The entries of these times in their order, expired ones too; null if this is no store by time. A cache of windows gets
     * them in the order of segments and keys, and null if it wants all.
     */
    final KeyValueIterator<Bytes, byte[]> entriesByTime(long from, long to, boolean isForward) {
        boolean mustSort = isCached;
        if (!isByTime || (mustSort && to == Long.MAX_VALUE)) {
            return null;
        }
        Keyspace entries = readable();
        if (entries == null || to < from || to < 0) {
            return Ranges.none();
        }
        KeyRange range = TimeIndex.between(Math.max(from, 0), to == Long.MAX_VALUE ? to : to + 1);
        return call(() -> {
            TimeIndex found = new TimeIndex(
                    name(), entries, isForward ? entries.entries(range) : entries.reverse(range), this::unordered, this::stored);
            return mustSort ? found.sorted(isForward) : found;
        });
    }

    /** A key so that keys of one time are in the order in which a store by time gives them. */
    abstract byte[] ordered(byte[] key);

    /** The inverse of {@link #ordered}. */
    abstract byte[] unordered(byte[] ordered);

    /** The entries for readers. A closed store has none, as Kafka's own. */
    private Keyspace readable() {
        return isOpen() ? database().entries() : null;
    }

    private void removeExpired() {
        long minimum = liveFrom();
        if (minimum > removedBefore) {
            expired(minimum).forEach(database()::deleteRange);
            removedBefore = minimum;
        }
    }

    /** What a removal removes. */
    private List<KeyRange> expired(long minimum) {
        KeyRange segments = KeyRange.before(Keys.segment(segment(minimum)));
        return isByTime ? List.of(segments, TimeIndex.between(0, segment(minimum) * interval)) : List.of(segments);
    }

    /** The first time that is neither dropped nor removed: it moves in steps, so that few deletes are enough. */
    private long liveFrom() {
        long expired = Math.max(0, streamTime - retention);
        return expired - expired % removalInterval;
    }

    private byte[] stored(byte[] key) {
        return stored(timeOf(key), key);
    }

    private byte[] stored(long time, byte[] key) {
        return Keys.ofSegment(segment(time), key);
    }

    private long segment(long time) {
        return time / interval;
    }
}
