package io.windrow.kafka.streams;

import io.windrow.Batch;
import io.windrow.KeyRange;
import io.windrow.Keyspace;
import java.util.List;
import java.util.Objects;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.serialization.Serializer;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.DslStoreFormat;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.state.HeadersBytesStore;
import org.apache.kafka.streams.state.KeyValueIterator;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.TimestampedBytesStore;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** A key-value store. */
class WindrowKeyValueStore extends AbstractStore implements KeyValueStore<Bytes, byte[]> {
    /** In the names of metrics. */
    static final String SCOPE = "windrow";

    private static final Logger LOG = LoggerFactory.getLogger(WindrowKeyValueStore.class);
    /** Up to so many keys are counted one by one. */
    private static final long COUNTED_MAX = 1000;
    private static final long NO_TIMESTAMP = -1;

    private WindrowKeyValueStore(String name, DslStoreFormat format) {
        super(name, "key-value " + format, 0);
    }

    static WindrowKeyValueStore of(String name, DslStoreFormat format) {
        return switch (format) {
            case PLAIN -> new WindrowKeyValueStore(name, format);
            case TIMESTAMPED -> new Timestamped(name);
            case HEADERS -> new WithHeaders(name);
        };
    }

    /** A store whose values have timestamps. */
    private static final class Timestamped extends WindrowKeyValueStore implements TimestampedBytesStore {
        Timestamped(String name) {
            super(name, DslStoreFormat.TIMESTAMPED);
        }
    }

    /** A store whose values have timestamps and headers. */
    private static final class WithHeaders extends WindrowKeyValueStore implements TimestampedBytesStore, HeadersBytesStore {
        WithHeaders(String name) {
            super(name, DslStoreFormat.HEADERS);
        }
    }

    @Override
    String metricsScope() {
        return SCOPE;
    }

    @Override
    void opened(State state) {}

    @Override
    void restore(ConsumerRecord<byte[], byte[]> record, Batch batch, Keyspace entries) {
        Keys.add(batch, entries, Keys.encoded(record.key()), record.value());
    }

    @Override
    long streamTime() {
        return NO_TIMESTAMP;
    }

    @Override
    int sequence() {
        return 0;
    }

    @Override
    public synchronized void put(Bytes key, byte[] value) {
        Objects.requireNonNull(key, "key cannot be null");
        beforeWrite();
        write(() -> database().put(Keys.encoded(key.get()), value));
    }

    @Override
    public synchronized byte[] putIfAbsent(Bytes key, byte[] value) {
        byte[] present = get(key);
        if (present == null && value != null) {
            put(key, value);
        }
        return present;
    }

    @Override
    public synchronized void putAll(List<KeyValue<Bytes, byte[]>> entries) {
        entries.forEach(entry -> Objects.requireNonNull(entry.key, "key cannot be null"));
        beforeWrite();
        write(() -> entries.forEach(entry -> database().put(Keys.encoded(entry.key.get()), entry.value)));
    }

    @Override
    public synchronized byte[] delete(Bytes key) {
        byte[] present = get(key);
        put(key, null);
        return present;
    }

    @Override
    public byte[] get(Bytes key) {
        Objects.requireNonNull(key, "key cannot be null");
        checkOpen();
        Keyspace entries = database().entries();
        return entries == null ? null : call(() -> entries.getOrNull(Keys.encoded(key.get())));
    }

    @Override
    public KeyValueIterator<Bytes, byte[]> range(Bytes from, Bytes to) {
        return range(from, to, true);
    }

    @Override
    public KeyValueIterator<Bytes, byte[]> reverseRange(Bytes from, Bytes to) {
        return range(from, to, false);
    }

    @Override
    public KeyValueIterator<Bytes, byte[]> all() {
        return iterator(KeyRange.all(), true);
    }

    @Override
    public KeyValueIterator<Bytes, byte[]> reverseAll() {
        return iterator(KeyRange.all(), false);
    }

    @Override
    public <PS extends Serializer<P>, P> KeyValueIterator<Bytes, byte[]> prefixScan(P prefix, PS serializer) {
        Objects.requireNonNull(prefix, "prefix cannot be null");
        Objects.requireNonNull(serializer, "prefixKeySerializer cannot be null");
        byte[] bytes = serializer.serialize(null, prefix);
        return iterator(bytes.length == 0 ? KeyRange.all() : KeyRange.prefix(Keys.encoded(bytes)), true);
    }

    private KeyValueIterator<Bytes, byte[]> range(Bytes from, Bytes to, boolean isForward) {
        if (from != null && to != null && from.compareTo(to) > 0) {
            LOG.warn(Ranges.INVALID);
            return Ranges.none();
        }
        byte[] start = from == null ? null : Keys.encoded(from.get());
        byte[] end = to == null ? null : Keys.encoded(to.get());
        return iterator(KeyRange.closed(start, end), isForward);
    }

    private KeyValueIterator<Bytes, byte[]> iterator(KeyRange range, boolean isForward) {
        checkOpen();
        Keyspace entries = database().entries();
        if (entries == null) {
            return Ranges.none();
        }
        return call(() -> new EntryIterator(name(), isForward ? entries.entries(range) : entries.reverse(range)));
    }

    @Override
    public long approximateNumEntries() {
        checkOpen();
        Keyspace entries = database().entries();
        if (entries == null) {
            return 0;
        }
        return call(() -> {
            long estimate = entries.approximateCount(KeyRange.all());
            return estimate > COUNTED_MAX ? estimate : entries.count(KeyRange.all());
        });
    }
}
