package io.windrow.kafka.streams;

import java.nio.ByteBuffer;
import java.util.function.Function;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.kstream.Windowed;
import org.apache.kafka.streams.state.KeyValueIterator;
import org.apache.kafka.streams.state.WindowStoreIterator;

/** Entries with the keys that callers want. */
final class WindowIterators {
    private WindowIterators() {}

    /** The starts of the windows of one key. */
    record Values(KeyValueIterator<Bytes, byte[]> entries) implements WindowStoreIterator<byte[]> {
        private static final int SUFFIX_BYTES = Long.BYTES + Integer.BYTES;

        private static long start(Bytes key) {
            return ByteBuffer.wrap(key.get()).getLong(key.get().length - SUFFIX_BYTES);
        }

        @Override
        public Long peekNextKey() {
            return start(entries.peekNextKey());
        }

        @Override
        public boolean hasNext() {
            return entries.hasNext();
        }

        @Override
        public KeyValue<Long, byte[]> next() {
            KeyValue<Bytes, byte[]> entry = entries.next();
            return KeyValue.pair(start(entry.key), entry.value);
        }

        @Override
        public void close() {
            entries.close();
        }
    }

    /** Keys with their windows. */
    record Windows(KeyValueIterator<Bytes, byte[]> entries, Function<Bytes, Windowed<Bytes>> windowed)
            implements KeyValueIterator<Windowed<Bytes>, byte[]> {
        @Override
        public Windowed<Bytes> peekNextKey() {
            return windowed.apply(entries.peekNextKey());
        }

        @Override
        public boolean hasNext() {
            return entries.hasNext();
        }

        @Override
        public KeyValue<Windowed<Bytes>, byte[]> next() {
            KeyValue<Bytes, byte[]> entry = entries.next();
            return KeyValue.pair(windowed.apply(entry.key), entry.value);
        }

        @Override
        public void close() {
            entries.close();
        }
    }
}
