package io.windrow.kafka.streams;

import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.state.HeadersBytesStoreSupplier;
import org.apache.kafka.streams.state.SessionBytesStoreSupplier;
import org.apache.kafka.streams.state.SessionStore;

/** Makes stores of sessions. */
class SessionSupplier implements SessionBytesStoreSupplier {
    private final String name;
    private final long retention;
    private final boolean isByTime;
    private final boolean hasHeaders;

    private SessionSupplier(String name, long retention, boolean isByTime, boolean hasHeaders) {
        this.name = name;
        this.retention = retention;
        this.isByTime = isByTime;
        this.hasHeaders = hasHeaders;
    }

    static SessionSupplier of(String name, long retention, boolean isByTime, boolean hasHeaders) {
        return hasHeaders
                ? new WithHeaders(name, retention, isByTime)
                : new SessionSupplier(name, retention, isByTime, false);
    }

    private static final class WithHeaders extends SessionSupplier implements HeadersBytesStoreSupplier {
        WithHeaders(String name, long retention, boolean isByTime) {
            super(name, retention, isByTime, true);
        }
    }

    @Override
    public String name() {
        return name;
    }

    @Override
    public SessionStore<Bytes, byte[]> get() {
        return WindrowSessionStore.of(name, retention, isByTime, hasHeaders);
    }

    @Override
    public String metricsScope() {
        return WindrowSessionStore.SCOPE;
    }

    @Override
    public long segmentIntervalMs() {
        return SegmentedStore.segmentInterval(retention);
    }

    @Override
    public long retentionPeriod() {
        return retention;
    }
}
