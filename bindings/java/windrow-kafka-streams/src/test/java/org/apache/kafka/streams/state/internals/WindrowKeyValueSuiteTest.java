package org.apache.kafka.streams.state.internals;

import io.windrow.kafka.streams.WindrowStores;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.streams.processor.StateStoreContext;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.Stores;

/** Kafka's own tests of key-value stores. They are in Kafka's package, because some of its methods are. */
public class WindrowKeyValueSuiteTest extends AbstractKeyValueStoreTest {
    @Override
    protected <K, V> KeyValueStore<K, V> createKeyValueStore(StateStoreContext context) {
        return create(context, false);
    }

    @SuppressWarnings("unchecked")
    static <K, V> KeyValueStore<K, V> create(StateStoreContext context, boolean isCached) {
        var builder = Stores.keyValueStoreBuilder(
                WindrowStores.keyValueStore("windrow"), (Serde<K>) context.keySerde(), (Serde<V>) context.valueSerde());
        KeyValueStore<K, V> store = (isCached ? builder.withCachingEnabled() : builder).build();
        store.init(context, store);
        return store;
    }
}
