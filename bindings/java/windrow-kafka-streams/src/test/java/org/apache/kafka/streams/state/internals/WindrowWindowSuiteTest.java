package org.apache.kafka.streams.state.internals;

import io.windrow.kafka.streams.WindrowStores;
import java.time.Duration;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.streams.state.Stores;
import org.apache.kafka.streams.state.WindowStore;

/** Kafka's own tests of stores of windows. */
public class WindrowWindowSuiteTest extends AbstractWindowBytesStoreTest {
    @Override
    <K, V> WindowStore<K, V> buildWindowStore(
            long retention, long size, boolean duplicates, Serde<K> keys, Serde<V> values) {
        return Stores.windowStoreBuilder(
                WindrowStores.windowStore("windrow", Duration.ofMillis(retention), Duration.ofMillis(size), duplicates),
                keys,
                values).build();
    }
}
