package io.windrow.kafka.streams;

import io.windrow.Cursor;
import io.windrow.ErrorCode;
import io.windrow.WindrowException;
import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.NoSuchElementException;
import java.util.function.Predicate;
import java.util.function.Supplier;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.errors.ProcessorStateException;
import org.apache.kafka.streams.processor.StateStore;
import org.apache.kafka.streams.state.KeyValueIterator;

/**
 * The entries of several segments, one segment after the other, with the keys without their segments. In each segment it
 * visits the keys between two bounds, and gives those that a condition accepts. It seeks from one segment that exists to the
 * next, however many numbers lie between them.
 *
 * <p>As with Kafka's own stores, it sees the state of its first use, and has no more entries after the close of the store.
 */
final class SegmentIterator implements KeyValueIterator<Bytes, byte[]> {
    private final StateStore store;
    private final Supplier<Cursor> opening;
    /** Null before the first use. */
    private Cursor cursor;
    private final long first;
    private final long last;
    /** Both bounds belong to the range; null is none. */
    private final byte[] lower;
    private final byte[] upper;
    private final Predicate<byte[]> condition;
    private final boolean isForward;
    private long segment;
    private boolean mustSeek = true;
    private boolean hasEnded;
    private KeyValue<Bytes, byte[]> next;
    /** After an error there is no place from which one could go on. */
    private ProcessorStateException failure;

    /** {@code opening} opens the cursor over these segments, or returns null if there are none. */
    SegmentIterator(
            StateStore store,
            Supplier<Cursor> opening,
            long first,
            long last,
            byte[] lower,
            byte[] upper,
            Predicate<byte[]> condition,
            boolean isForward) {
        this.store = store;
        this.opening = opening;
        this.first = first;
        this.last = last;
        this.lower = lower;
        this.upper = upper;
        this.condition = condition;
        this.isForward = isForward;
        this.segment = isForward ? first : last;
    }

    @Override
    public boolean hasNext() {
        if (failure != null) {
            throw failure;
        }
        if (next == null && !hasEnded) {
            try {
                next = find();
            } catch (WindrowException error) {
                if (error.code() != ErrorCode.CLOSED) {
                    failure = new ProcessorStateException("Error while reading store " + store.name(), error);
                    throw failure;
                }
            }
        }
        if (next == null || !store.isOpen()) {
            close();
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
        hasEnded = true;
        next = null;
        if (cursor != null) {
            cursor.close();
        }
    }

    private KeyValue<Bytes, byte[]> find() {
        if (cursor == null) {
            cursor = opening.get();
            if (cursor == null) {
                return null;
            }
        }
        while (segment >= first && segment <= last) {
            if (!move()) {
                return null;
            }
            ByteBuffer stored = cursor.keyBuffer();
            long found = Keys.segmentOf(stored);
            byte[] key = Keys.withoutSegment(stored);
            if (found != segment) {
                segment = found;
                // The cursor is at the near end of that segment, perhaps in front of the first bound.
                mustSeek = isForward ? isBefore(key) : isBehind(key);
                if (mustSeek) {
                    continue;
                }
            }
            if (isForward ? isBehind(key) : isBefore(key)) {
                segment += isForward ? 1 : -1;
                mustSeek = true;
            } else if (segment >= first && segment <= last && condition.test(key)) {
                return KeyValue.pair(Bytes.wrap(key), cursor.value());
            }
        }
        return null;
    }

    private boolean move() {
        if (!mustSeek) {
            return isForward ? cursor.next() : cursor.previous();
        }
        mustSeek = false;
        if (isForward) {
            return cursor.seek(lower == null ? Keys.segment(segment) : Keys.ofSegment(segment, lower));
        }
        if (upper == null) {
            return cursor.seekBefore(Keys.segment(segment + 1));
        }
        byte[] bound = Keys.ofSegment(segment, upper);
        return cursor.seekBefore(Arrays.copyOf(bound, bound.length + 1));
    }

    private boolean isBefore(byte[] key) {
        return lower != null && Arrays.compareUnsigned(key, lower) < 0;
    }

    private boolean isBehind(byte[] key) {
        return upper != null && Arrays.compareUnsigned(key, upper) > 0;
    }
}
