package org.apache.kafka.streams.state.internals;

import io.windrow.kafka.streams.WindrowStores;
import java.time.Duration;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.streams.state.SessionStore;
import org.apache.kafka.streams.state.Stores;

/** Kafka's own tests of stores of sessions. */
public class WindrowSessionSuiteTest extends AbstractSessionBytesStoreTest {
    @Override
    <K, V> SessionStore<K, V> buildSessionStore(long retention, Serde<K> keys, Serde<V> values) {
        return Stores.sessionStoreBuilder(
                WindrowStores.sessionStore("windrow", Duration.ofMillis(retention)), keys, values).build();
    }

    /** Says that the store finds sessions by their ends. */
    @Override
    StoreType storeType() {
        return StoreType.InMemoryStore;
    }
}
