package io.windrow.kafka.streams.endtoend;

import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import org.apache.kafka.streams.processor.StateStore;
import org.apache.kafka.streams.processor.StateStoreContext;
import org.apache.kafka.streams.processor.internals.RecordBatchingStateRestoreCallback;
import org.apache.kafka.streams.state.BuiltInDslStoreSuppliers.InMemoryDslStoreSuppliers;
import org.apache.kafka.streams.state.DslKeyValueParams;
import org.apache.kafka.streams.state.DslSessionParams;
import org.apache.kafka.streams.state.DslStoreSuppliers;
import org.apache.kafka.streams.state.DslWindowParams;
import org.apache.kafka.streams.state.KeyValueBytesStoreSupplier;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.SessionBytesStoreSupplier;
import org.apache.kafka.streams.state.SessionStore;
import org.apache.kafka.streams.state.StoreSupplier;
import org.apache.kafka.streams.state.WindowBytesStoreSupplier;
import org.apache.kafka.streams.state.WindowStore;

/** Stores that throw away what is restored: they cost nothing. They are those of Kafka in memory, which never get anything. */
public final class NoStores implements DslStoreSuppliers {
    /** What a method without a result returns. */
    private static final Object NOTHING = new Object();

    private final DslStoreSuppliers memory = new InMemoryDslStoreSuppliers();

    @Override
    public KeyValueBytesStoreSupplier keyValueStore(DslKeyValueParams parameters) {
        return supplier(KeyValueBytesStoreSupplier.class, KeyValueStore.class, memory.keyValueStore(parameters));
    }

    @Override
    public WindowBytesStoreSupplier windowStore(DslWindowParams parameters) {
        return supplier(WindowBytesStoreSupplier.class, WindowStore.class, memory.windowStore(parameters));
    }

    @Override
    public SessionBytesStoreSupplier sessionStore(DslSessionParams parameters) {
        return supplier(SessionBytesStoreSupplier.class, SessionStore.class, memory.sessionStore(parameters));
    }

    private static <S extends StoreSupplier<?>> S supplier(Class<S> type, Class<? extends StateStore> store, S inMemory) {
        return instead(type, inMemory, (method, given) -> method.equals("get") ? store(store, inMemory.get()) : null);
    }

    private static <T extends StateStore> T store(Class<T> type, StateStore inMemory) {
        return instead(type, inMemory, (method, given) -> switch (method) {
            case "init" -> {
                ((StateStoreContext) given[0]).register((StateStore) given[1], (RecordBatchingStateRestoreCallback) records -> {});
                yield NOTHING;
            }
            case "isOpen" -> true;
            default -> null;
        });
    }

    /** What a method returns; null if that of the other object is to be called. */
    private interface Answer {
        Object of(String method, Object[] given);
    }

    private static <T> T instead(Class<T> type, Object other, Answer own) {
        return type.cast(Proxy.newProxyInstance(type.getClassLoader(), new Class<?>[] {type}, (proxy, method, given) -> {
            Object answer = own.of(method.getName(), given);
            if (answer != null) {
                return answer == NOTHING ? null : answer;
            }
            try {
                return method.invoke(other, given);
            } catch (InvocationTargetException failed) {
                throw failed.getCause();
            }
        }));
    }
}
