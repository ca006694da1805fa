package org.apache.kafka.streams.state.internals;

import org.apache.kafka.streams.processor.StateStoreContext;
import org.apache.kafka.streams.state.KeyValueStore;

/** Kafka's own tests of key-value stores, with the cache of records above the store, which merges iterators. */
public class WindrowCachedKeyValueSuiteTest extends AbstractKeyValueStoreTest {
    @Override
    protected <K, V> KeyValueStore<K, V> createKeyValueStore(StateStoreContext context) {
        return WindrowKeyValueSuiteTest.create(context, true);
    }
}
