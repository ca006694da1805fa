package io.windrow.kafka.streams;

import io.windrow.Entries;
import io.windrow.KeyRange;
import io.windrow.Keyspace;
import java.nio.ByteBuffer;
import java.util.NoSuchElementException;
import java.util.TreeMap;
import java.util.function.UnaryOperator;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.state.KeyValueIterator;

/**
 * Entries in the order of their times. The index is in the keyspace of the entries, behind all of their segments: a key has
 * its first bit set, and is the time and then the key of the entry, in the order in which keys of one time are wanted. It has
 * no value: that of the entry is read when it is needed.
 */
final class TimeIndex implements KeyValueIterator<Bytes, byte[]> {
    /** The value of a key of the index. */
    static final byte[] VALUE = {};
    private static final long FIRST_BIT = Long.MIN_VALUE;

    private final EntryIterator times;
    private final Keyspace entries;
    private final UnaryOperator<byte[]> unordered;
    private final UnaryOperator<byte[]> stored;
    private KeyValue<Bytes, byte[]> next;

    /** {@code unordered} makes the key of an entry from the one in the index, and {@code stored} the stored one from that. */
    TimeIndex(String store, Keyspace entries, Entries times, UnaryOperator<byte[]> unordered, UnaryOperator<byte[]> stored) {
        this.times = new EntryIterator(store, times);
        this.entries = entries;
        this.unordered = unordered;
        this.stored = stored;
    }

    static byte[] key(long time, byte[] ordered) {
        return Keys.ofSegment(time | FIRST_BIT, ordered);
    }

    /** The times from {@code from} on and before {@code before}, or to the end of time. */
    static KeyRange between(long from, long before) {
        byte[] start = Keys.segment(from | FIRST_BIT);
        return before == Long.MAX_VALUE ? KeyRange.from(start) : KeyRange.between(start, Keys.segment(before | FIRST_BIT));
    }

    /** All entries in the order of their stored keys. Closes this one. */
    KeyValueIterator<Bytes, byte[]> sorted(boolean isForward) {
        TreeMap<Bytes, KeyValue<Bytes, byte[]>> sorted = new TreeMap<>();
        try (this) {
            forEachRemaining(it -> sorted.put(Bytes.wrap(stored.apply(it.key.get())), it));
        }
        return Ranges.of((isForward ? sorted : sorted.descendingMap()).values().iterator());
    }

    @Override
    public boolean hasNext() {
        while (next == null && times.hasNext()) {
            byte[] key = unordered.apply(Keys.withoutSegment(ByteBuffer.wrap(times.next().key.get())));
            byte[] value = entries.getOrNull(stored.apply(key));
            // It may have been removed since this iterator began.
            next = value == null ? null : KeyValue.pair(Bytes.wrap(key), value);
        }
        return next != null;
    }

    @Override
    public KeyValue<Bytes, byte[]> next() {
        if (!hasNext()) {
            throw new NoSuchElementException();
        }
        KeyValue<Bytes, byte[]> found = next;
        next = null;
        return found;
    }

    @Override
    public Bytes peekNextKey() {
        if (!hasNext()) {
            throw new NoSuchElementException();
        }
        return next.key;
    }

    @Override
    public void close() {
        next = null;
        times.close();
    }
}
