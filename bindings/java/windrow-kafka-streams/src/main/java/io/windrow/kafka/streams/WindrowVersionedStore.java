package io.windrow.kafka.streams;

import io.windrow.Batch;
import io.windrow.Entries;
import io.windrow.Entry;
import io.windrow.KeyRange;
import io.windrow.Keyspace;
import java.nio.ByteBuffer;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.Collections;
import java.util.Iterator;
import java.util.List;
import java.util.Objects;
import java.util.Optional;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.metrics.Sensor;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.processor.StateStore;
import org.apache.kafka.streams.processor.StateStoreContext;
import org.apache.kafka.streams.query.MultiVersionedKeyQuery;
import org.apache.kafka.streams.query.PositionBound;
import org.apache.kafka.streams.query.Query;
import org.apache.kafka.streams.query.QueryConfig;
import org.apache.kafka.streams.query.QueryResult;
import org.apache.kafka.streams.query.ResultOrder;
import org.apache.kafka.streams.state.VersionedKeyValueStore;
import org.apache.kafka.streams.state.VersionedRecord;
import org.apache.kafka.streams.state.VersionedRecordIterator;

/**
 * A versioned store: it knows what a key was at each time of its history. The history ends when the time of the stream has
 * passed by the retention; but the last version of a key stays.
 *
 * <p>The stored key of a version is the key with its length, and the timestamp such that a later one comes first. The stored
 * value says first whether there was one. A version is valid until the timestamp of the next one, so a write needs nothing of
 * the other versions. Writes and restores also remove some of what has expired, of whatever key.
 */
final class WindrowVersionedStore extends AbstractStore implements VersionedKeyValueStore<Bytes, byte[]> {
    /** In the names of metrics. */
    static final String SCOPE = "windrow";

    /** So many versions are looked at for each that is written, in a step for so many writes. */
    private static final int SWEEP_FACTOR = 4;
    private static final int SWEEP_WRITES = 64;
    private static final byte ABSENT = 0;
    private static final byte PRESENT = 1;

    private final long retention;
    /** Written with the lock of the store, and read by queries of other threads. */
    private volatile long streamTime;
    /** The version up to which the sweep has come; null before the first. */
    private byte[] sweptTo;
    private long writes;
    private Sensor expiredRecords;

    WindrowVersionedStore(String name, long retention) {
        super(name, "versioned", 0);
        this.retention = retention;
    }

    @Override
    public void init(StateStoreContext context, StateStore root) {
        expiredRecords = Metrics.droppedRecords(context);
        super.init(context, root);
    }

    @Override
    String metricsScope() {
        return SCOPE;
    }

    @Override
    void opened(State state) {
        streamTime = state.streamTime();
        // The version there may be gone.
        sweptTo = null;
    }

    @Override
    long streamTime() {
        return streamTime;
    }

    @Override
    int sequence() {
        return 0;
    }

    @Override
    void restoring(Collection<ConsumerRecord<byte[], byte[]>> records, Batch batch, Keyspace entries) {
        expired(entries, SWEEP_FACTOR * records.size()).forEach(it -> batch.delete(entries, it));
    }

    @Override
    void restore(ConsumerRecord<byte[], byte[]> record, Batch batch, Keyspace entries) {
        if (record.timestamp() < historyStart()) {
            return;
        }
        streamTime = Math.max(streamTime, record.timestamp());
        batch.put(entries, stored(record.key(), record.timestamp()), packed(record.value()));
    }

    @Override
    public synchronized long put(Bytes key, byte[] value, long timestamp) {
        Objects.requireNonNull(key, "key cannot be null");
        beforeWrite();
        if (timestamp < historyStart()) {
            write(this::drop);
            expiredRecords.record(1.0, Metrics.now(context()));
            return PUT_RETURN_CODE_NOT_PUT;
        }
        return putVersion(key.get(), value, timestamp);
    }

    @Override
    public synchronized VersionedRecord<byte[]> delete(Bytes key, long timestamp) {
        Objects.requireNonNull(key, "key cannot be null");
        beforeWrite();
        if (timestamp < historyStart()) {
            drop();
            expiredRecords.record(1.0, Metrics.now(context()));
            return null;
        }
        VersionedRecord<byte[]> existing = get(key, timestamp);
        putVersion(key.get(), null, timestamp);
        return existing;
    }

    /** Returns until when the version is valid. */
    private long putVersion(byte[] key, byte[] value, long timestamp) {
        streamTime = Math.max(streamTime, timestamp);
        Keyspace entries = call(database()::writable);
        Optional<Entry> next = call(() -> entries.last(KeyRange.between(first(key), stored(key, timestamp))));
        write(() -> {
            database().put(stored(key, timestamp), packed(value));
            if (++writes % SWEEP_WRITES == 0) {
                expired(entries, SWEEP_FACTOR * SWEEP_WRITES).forEach(it -> database().put(it, null));
            }
        });
        return next.isEmpty() ? PUT_RETURN_CODE_VALID_TO_UNDEFINED : timestampOf(next.get().key());
    }

    /**
     * What has expired of the next so many versions, over all keys and again from the first: versions that were followed by
     * another one before the history, and the last one before it if it says that there was no value. More versions are looked
     * at than are written, so what has expired is at most a part of what has not.
     */
    private List<byte[]> expired(Keyspace entries, int count) {
        List<byte[]> expired = new ArrayList<>();
        long start = historyStart();
        try (Entries found = entries.entries(sweptTo == null ? KeyRange.all() : KeyRange.from(sweptTo))) {
            int left = count;
            for (; left > 0 && found.hasNext(); left--) {
                Entry version = found.next();
                byte[] stored = version.key();
                boolean isFollowed = sweptTo != null && isOfSameKey(sweptTo, stored) && !Arrays.equals(sweptTo, stored)
                        && timestampOf(sweptTo) <= start;
                // A delete must not go before what it has deleted.
                boolean isOldest = !found.hasNext() || !isOfSameKey(stored, found.peekKey());
                boolean saysNothing = isOldest && version.value()[0] == ABSENT && timestampOf(stored) < start;
                if (isFollowed || saysNothing) {
                    expired.add(stored);
                }
                sweptTo = stored;
            }
            if (left > 0) {
                sweptTo = null;
            }
        }
        return expired;
    }

    private static boolean isOfSameKey(byte[] one, byte[] other) {
        return one.length == other.length
                && Arrays.equals(one, 0, one.length - Long.BYTES, other, 0, other.length - Long.BYTES);
    }

    @Override
    public VersionedRecord<byte[]> get(Bytes key) {
        return get(key, Long.MAX_VALUE);
    }

    @Override
    public VersionedRecord<byte[]> get(Bytes key, long asOf) {
        Objects.requireNonNull(key, "key cannot be null");
        checkOpen();
        Keyspace entries = database().entries();
        if (entries == null) {
            return null;
        }
        byte[] bytes = key.get();
        return call(() -> {
            Optional<Entry> found = entries.first(KeyRange.between(stored(bytes, asOf), end(bytes)));
            if (found.isEmpty() || found.get().value()[0] == ABSENT) {
                return null;
            }
            long timestamp = timestampOf(found.get().key());
            Optional<Entry> next = entries.last(KeyRange.between(first(bytes), stored(bytes, timestamp)));
            if (next.isEmpty()) {
                return new VersionedRecord<>(unpacked(found.get().value()), timestamp);
            }
            if (asOf < historyStart()) {
                return null;
            }
            return new VersionedRecord<>(unpacked(found.get().value()), timestamp, timestampOf(next.get().key()));
        });
    }

    /** The versions of {@code key} that were valid at some time of a range, within the history. */
    private VersionedRecordIterator<byte[]> versions(Bytes key, long from, long to, boolean isForward) {
        checkOpen();
        Keyspace entries = database().entries();
        List<VersionedRecord<byte[]>> found = new ArrayList<>();
        if (entries != null) {
            call(() -> {
                collect(entries, key.get(), Math.max(from, historyStart()), to, found);
                return null;
            });
        }
        if (isForward) {
            Collections.reverse(found);
        }
        return new Versions(found);
    }

    private void collect(Keyspace entries, byte[] key, long from, long to, List<VersionedRecord<byte[]>> found) {
        boolean isLatest = true;
        long validTo = 0;
        try (Entries versions = entries.entries(versions(key))) {
            while (versions.hasNext() && (isLatest || validTo > from)) {
                Entry version = versions.next();
                long timestamp = timestampOf(version.key());
                if (timestamp <= to && version.value()[0] == PRESENT && (isLatest || to >= historyStart())) {
                    byte[] value = unpacked(version.value());
                    found.add(isLatest
                            ? new VersionedRecord<>(value, timestamp)
                            : new VersionedRecord<>(value, timestamp, validTo));
                }
                validTo = timestamp;
                isLatest = false;
            }
        }
    }

    @Override
    @SuppressWarnings("unchecked")
    public <R> QueryResult<R> query(Query<R> query, PositionBound bound, QueryConfig configuration) {
        if (!(query instanceof MultiVersionedKeyQuery)) {
            return super.query(query, bound, configuration);
        }
        MultiVersionedKeyQuery<Bytes, byte[]> asked = (MultiVersionedKeyQuery<Bytes, byte[]>) query;
        long from = asked.fromTime().map(Instant::toEpochMilli).orElse(Long.MIN_VALUE);
        long to = asked.toTime().map(Instant::toEpochMilli).orElse(Long.MAX_VALUE);
        return answered(bound, configuration, () -> (R) versions(asked.key(), from, to, asked.resultOrder() == ResultOrder.ASCENDING));
    }

    private long historyStart() {
        return streamTime - retention;
    }

    private static byte[] stored(byte[] key, long timestamp) {
        return ByteBuffer.allocate(Integer.BYTES + key.length + Long.BYTES)
                .putInt(key.length).put(key).putLong(~(timestamp ^ Long.MIN_VALUE)).array();
    }

    private static byte[] first(byte[] key) {
        return stored(key, Long.MAX_VALUE);
    }

    /** Behind all versions of {@code key}. */
    private static byte[] end(byte[] key) {
        return Arrays.copyOf(stored(key, Long.MIN_VALUE), Integer.BYTES + key.length + Long.BYTES + 1);
    }

    private static KeyRange versions(byte[] key) {
        return KeyRange.between(first(key), end(key));
    }

    private static long timestampOf(byte[] stored) {
        return ~ByteBuffer.wrap(stored).getLong(stored.length - Long.BYTES) ^ Long.MIN_VALUE;
    }

    private static byte[] packed(byte[] value) {
        return value == null
                ? new byte[] {ABSENT}
                : ByteBuffer.allocate(1 + value.length).put(PRESENT).put(value).array();
    }

    private static byte[] unpacked(byte[] packed) {
        return Arrays.copyOfRange(packed, 1, packed.length);
    }

    private static final class Versions implements VersionedRecordIterator<byte[]> {
        private final Iterator<VersionedRecord<byte[]>> records;
        private boolean isClosed;

        Versions(List<VersionedRecord<byte[]>> records) {
            this.records = records.iterator();
        }

        @Override
        public boolean hasNext() {
            if (isClosed) {
                throw new IllegalStateException("The iterator is out of scope.");
            }
            return records.hasNext();
        }

        @Override
        public VersionedRecord<byte[]> next() {
            hasNext();
            return records.next();
        }

        @Override
        public void close() {
            isClosed = true;
        }
    }
}
