package io.windrow.kafka.streams;

import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.VersionedBytesStoreSupplier;
import org.apache.kafka.streams.state.internals.VersionedKeyValueToBytesStoreAdapter;

/**
 * Makes versioned stores.
 *
 * @param name of the store
 * @param historyRetentionMs how long a version stays after another one has followed it
 */
record VersionedSupplier(String name, long historyRetentionMs) implements VersionedBytesStoreSupplier {
    @Override
    public KeyValueStore<Bytes, byte[]> get() {
        return new VersionedKeyValueToBytesStoreAdapter(new WindrowVersionedStore(name, historyRetentionMs));
    }

    @Override
    public String metricsScope() {
        return WindrowVersionedStore.SCOPE;
    }
}
