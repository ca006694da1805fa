package io.windrow.kafka.streams;

import org.apache.kafka.streams.DslStoreFormat;
import org.apache.kafka.streams.kstream.EmitStrategy;
import org.apache.kafka.streams.state.DslKeyValueParams;
import org.apache.kafka.streams.state.DslSessionParams;
import org.apache.kafka.streams.state.DslStoreSuppliers;
import org.apache.kafka.streams.state.DslWindowParams;
import org.apache.kafka.streams.state.KeyValueBytesStoreSupplier;
import org.apache.kafka.streams.state.SessionBytesStoreSupplier;
import org.apache.kafka.streams.state.WindowBytesStoreSupplier;

/**
 * Makes Windrow the store of an application, by one line of its configuration:
 *
 * <pre>{@code
 * dsl.store.suppliers.class=io.windrow.kafka.streams.WindrowStoreSuppliers
 * }</pre>
 */
public final class WindrowStoreSuppliers implements DslStoreSuppliers {
    @Override
    public KeyValueBytesStoreSupplier keyValueStore(DslKeyValueParams parameters) {
        return KeyValueSupplier.of(parameters.name(), parameters.dslStoreFormat());
    }

    @Override
    public WindowBytesStoreSupplier windowStore(DslWindowParams parameters) {
        DslStoreFormat format = parameters.dslStoreFormat();
        return WindrowStores.windowStore(
                parameters.name(),
                parameters.retentionPeriod(),
                parameters.windowSize(),
                parameters.retainDuplicates(),
                isAtClose(parameters.emitStrategy()),
                format == null ? DslStoreFormat.TIMESTAMPED : format);
    }

    @Override
    public SessionBytesStoreSupplier sessionStore(DslSessionParams parameters) {
        return WindrowStores.sessionStore(
                parameters.name(),
                parameters.retentionPeriod(),
                isAtClose(parameters.emitStrategy()),
                parameters.storeFormat() == DslStoreFormat.HEADERS);
    }

    private static boolean isAtClose(EmitStrategy strategy) {
        return strategy.type() == EmitStrategy.StrategyType.ON_WINDOW_CLOSE;
    }
}
