package io.windrow.kafka.streams.endtoend;

import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.processor.StateStore;
import org.apache.kafka.streams.processor.StateStoreContext;
import org.apache.kafka.streams.processor.internals.RecordBatchingStateRestoreCallback;
import org.apache.kafka.streams.state.DslKeyValueParams;
import org.apache.kafka.streams.state.DslSessionParams;
import org.apache.kafka.streams.state.DslStoreSuppliers;
import org.apache.kafka.streams.state.DslWindowParams;
import org.apache.kafka.streams.state.KeyValueBytesStoreSupplier;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.SessionBytesStoreSupplier;
import org.apache.kafka.streams.state.SessionStore;
import org.apache.kafka.streams.state.WindowBytesStoreSupplier;
import org.apache.kafka.streams.state.WindowStore;
import org.apache.kafka.streams.state.internals.InMemoryKeyValueStore;
import org.apache.kafka.streams.state.internals.InMemorySessionStore;
import org.apache.kafka.streams.state.internals.InMemoryWindowStore;

/** Stores that throw away what is restored: they cost nothing. */
public final class NoStores implements DslStoreSuppliers {
    private static void register(StateStoreContext context, StateStore root) {
        context.register(root, (RecordBatchingStateRestoreCallback) records -> {});
    }

    @Override
    public KeyValueBytesStoreSupplier keyValueStore(DslKeyValueParams parameters) {
        return new KeyValueBytesStoreSupplier() {
            @Override
            public String name() {
                return parameters.name();
            }

            @Override
            public KeyValueStore<Bytes, byte[]> get() {
                return new InMemoryKeyValueStore(parameters.name()) {
                    @Override
                    public void init(StateStoreContext context, StateStore root) {
                        register(context, root);
                    }

                    @Override
                    public boolean isOpen() {
                        return true;
                    }
                };
            }

            @Override
            public String metricsScope() {
                return "none";
            }
        };
    }

    @Override
    public WindowBytesStoreSupplier windowStore(DslWindowParams parameters) {
        return new WindowBytesStoreSupplier() {
            @Override
            public String name() {
                return parameters.name();
            }

            @Override
            public WindowStore<Bytes, byte[]> get() {
                return new InMemoryWindowStore(
                        parameters.name(), retentionPeriod(), windowSize(), retainDuplicates(), metricsScope()) {
                    @Override
                    public void init(StateStoreContext context, StateStore root) {
                        register(context, root);
                    }

                    @Override
                    public boolean isOpen() {
                        return true;
                    }
                };
            }

            @Override
            public String metricsScope() {
                return "none";
            }

            @Override
            public long segmentIntervalMs() {
                return 60_000;
            }

            @Override
            public long windowSize() {
                return parameters.windowSize().toMillis();
            }

            @Override
            public boolean retainDuplicates() {
                return parameters.retainDuplicates();
            }

            @Override
            public long retentionPeriod() {
                return parameters.retentionPeriod().toMillis();
            }
        };
    }

    @Override
    public SessionBytesStoreSupplier sessionStore(DslSessionParams parameters) {
        return new SessionBytesStoreSupplier() {
            @Override
            public String name() {
                return parameters.name();
            }

            @Override
            public SessionStore<Bytes, byte[]> get() {
                return new InMemorySessionStore(parameters.name(), retentionPeriod(), metricsScope()) {
                    @Override
                    public void init(StateStoreContext context, StateStore root) {
                        register(context, root);
                    }

                    @Override
                    public boolean isOpen() {
                        return true;
                    }
                };
            }

            @Override
            public String metricsScope() {
                return "none";
            }

            @Override
            public long segmentIntervalMs() {
                return 60_000;
            }

            @Override
            public long retentionPeriod() {
                return parameters.retentionPeriod().toMillis();
            }
        };
    }
}
