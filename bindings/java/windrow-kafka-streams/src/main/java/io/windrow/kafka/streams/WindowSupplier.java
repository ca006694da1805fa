package io.windrow.kafka.streams;

import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.DslStoreFormat;
import org.apache.kafka.streams.state.HeadersBytesStoreSupplier;
import org.apache.kafka.streams.state.WindowBytesStoreSupplier;
import org.apache.kafka.streams.state.WindowStore;

/** Makes stores of windows. */
class WindowSupplier implements WindowBytesStoreSupplier {
    private final WindowParameters parameters;
    private final DslStoreFormat format;

    private WindowSupplier(WindowParameters parameters, DslStoreFormat format) {
        this.parameters = parameters;
        this.format = format;
    }

    static WindowSupplier of(WindowParameters parameters, DslStoreFormat format) {
        return format == DslStoreFormat.HEADERS ? new WithHeaders(parameters) : new WindowSupplier(parameters, format);
    }

    private static final class WithHeaders extends WindowSupplier implements HeadersBytesStoreSupplier {
        WithHeaders(WindowParameters parameters) {
            super(parameters, DslStoreFormat.HEADERS);
        }
    }

    @Override
    public String name() {
        return parameters.name();
    }

    @Override
    public WindowStore<Bytes, byte[]> get() {
        return WindrowWindowStore.of(parameters, format);
    }

    @Override
    public String metricsScope() {
        return WindrowWindowStore.SCOPE;
    }

    @Override
    public long segmentIntervalMs() {
        return SegmentedStore.segmentInterval(parameters.retention());
    }

    @Override
    public long windowSize() {
        return parameters.windowSize();
    }

    @Override
    public boolean retainDuplicates() {
        return parameters.retainsDuplicates();
    }

    @Override
    public long retentionPeriod() {
        return parameters.retention();
    }
}
