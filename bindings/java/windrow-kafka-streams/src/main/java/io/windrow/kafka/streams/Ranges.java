package io.windrow.kafka.streams;

import java.util.Collections;
import java.util.Iterator;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.state.KeyValueIterator;

/** Entries without a cursor, and ranges without keys. */
final class Ranges {
    /** What the log says about a range whose end is before its start. Kafka's own tests look for this text. */
    static final String INVALID = "Returning empty iterator for fetch with invalid key range: from > to. "
            + "This may be due to range arguments set in the wrong order, "
            + "or serdes that don't preserve ordering when lexicographically comparing the serialized bytes. "
            + "Note that the built-in numerical serdes do not follow this for negative numbers";

    private Ranges() {}

    static <K> KeyValueIterator<K, byte[]> none() {
        return of(Collections.emptyIterator());
    }

    /** Entries that are in memory. */
    static <K> KeyValueIterator<K, byte[]> of(Iterator<KeyValue<K, byte[]>> entries) {
        return new KeyValueIterator<>() {
            private KeyValue<K, byte[]> next;

            @Override
            public boolean hasNext() {
                return next != null || entries.hasNext();
            }

            @Override
            public KeyValue<K, byte[]> next() {
                KeyValue<K, byte[]> found = next == null ? entries.next() : next;
                next = null;
                return found;
            }

            @Override
            public K peekNextKey() {
                next = next();
                return next.key;
            }

            @Override
            public void close() {}
        };
    }
}
