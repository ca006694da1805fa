package io.windrow.kafka.streams;

import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.state.HeadersBytesStoreSupplier;
import org.apache.kafka.streams.state.SessionBytesStoreSupplier;
import org.apache.kafka.streams.state.SessionStore;

/** Makes stores of sessions. */
class SessionSupplier implements SessionBytesStoreSupplier {
    private final String name;
    private final long retention;
    private final long segmentInterval;
    private final boolean hasHeaders;

    private SessionSupplier(String name, long retention, long segmentInterval, boolean hasHeaders) {
        this.name = name;
        this.retention = retention;
        this.segmentInterval = segmentInterval;
        this.hasHeaders = hasHeaders;
    }

    static SessionSupplier of(String name, long retention, long segmentInterval, boolean hasHeaders) {
        return hasHeaders
                ? new WithHeaders(name, retention, segmentInterval)
                : new SessionSupplier(name, retention, segmentInterval, false);
    }

    private static final class WithHeaders extends SessionSupplier implements HeadersBytesStoreSupplier {
        WithHeaders(String name, long retention, long segmentInterval) {
            super(name, retention, segmentInterval, true);
        }
    }

    @Override
    public String name() {
        return name;
    }

    @Override
    public SessionStore<Bytes, byte[]> get() {
        return WindrowSessionStore.of(name, retention, segmentInterval, hasHeaders);
    }

    @Override
    public String metricsScope() {
        return "windrow-session";
    }

    @Override
    public long segmentIntervalMs() {
        return segmentInterval;
    }

    @Override
    public long retentionPeriod() {
        return retention;
    }
}
