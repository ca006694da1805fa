package io.windrow.kafka.streams;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.Closeable;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.Random;
import java.util.function.BiConsumer;
import java.util.function.Function;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.kstream.Windowed;
import org.apache.kafka.streams.kstream.internals.SessionWindow;
import org.apache.kafka.streams.processor.StateStore;
import org.apache.kafka.streams.query.KeyQuery;
import org.apache.kafka.streams.query.MultiVersionedKeyQuery;
import org.apache.kafka.streams.query.Position;
import org.apache.kafka.streams.query.PositionBound;
import org.apache.kafka.streams.query.Query;
import org.apache.kafka.streams.query.QueryConfig;
import org.apache.kafka.streams.query.QueryResult;
import org.apache.kafka.streams.query.RangeQuery;
import org.apache.kafka.streams.query.TimestampedKeyQuery;
import org.apache.kafka.streams.query.TimestampedRangeQuery;
import org.apache.kafka.streams.query.VersionedKeyQuery;
import org.apache.kafka.streams.query.WindowKeyQuery;
import org.apache.kafka.streams.query.WindowRangeQuery;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.SessionStore;
import org.apache.kafka.streams.state.Stores;
import org.apache.kafka.streams.state.TimestampedKeyValueStore;
import org.apache.kafka.streams.state.ValueAndTimestamp;
import org.apache.kafka.streams.state.VersionedKeyValueStore;
import org.apache.kafka.streams.state.VersionedRecord;
import org.apache.kafka.streams.state.VersionedRecordIterator;
import org.apache.kafka.streams.state.WindowStore;
import org.apache.kafka.test.InternalMockProcessorContext;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Interactive queries (version 2) to the stores that applications get have the answers of Kafka's stores on RocksDB. */
class QueriesTest {
    private static final Serde<String> TEXT = Serdes.String();
    private static final Duration RETENTION = Duration.ofHours(1);
    private static final Duration SIZE = Duration.ofMinutes(1);

    @TempDir
    Path folder;

    private final Random random = new Random(5);
    private final List<InternalMockProcessorContext<Object, Object>> contexts = new ArrayList<>();

    /** Opens both stores, and writes the same to them, each as the result of a record of the input with the next offset. */
    private <S extends StateStore> List<S> stores(S own, S rocks, BiConsumer<S, String> write) {
        List<S> stores = List.of(own, rocks);
        for (S store : stores) {
            Path task = folder.resolve(store == own ? "own" : "rocks");
            assertTrue(task.toFile().mkdirs());
            InternalMockProcessorContext<Object, Object> context = Contexts.in(task.toFile());
            contexts.add(context);
            store.init(context, store);
        }
        for (int offset = 0; offset < 300; offset++) {
            String key = key();
            long seed = random.nextLong();
            for (int i = 0; i < 2; i++) {
                Contexts.process(contexts.get(i), offset);
                random.setSeed(seed);
                write.accept(stores.get(i), key);
            }
        }
        return stores;
    }

    private String key() {
        return "key " + (char) ('a' + random.nextInt(20));
    }

    private String value() {
        return random.nextInt(5) == 0 ? null : "value " + random.nextInt(1000);
    }

    private static PositionBound at(long offset) {
        return PositionBound.at(Position.emptyPosition().withComponent("input", 0, offset));
    }

    /** The same answer of both, with the same position; and the same refusal if the store is behind what is asked for. */
    private static <S extends StateStore, R> void same(List<S> stores, Query<R> query) {
        QueryConfig configuration = new QueryConfig(true);
        List<String> answers = new ArrayList<>();
        for (S store : stores) {
            QueryResult<R> result = store.query(query, at(299), configuration);
            assertTrue(result.isSuccess(), () -> query + ": " + result.getFailureMessage());
            assertEquals(299, result.getPosition().getPartitionPositions("input").get(0));
            assertTrue(!result.getExecutionInfo().isEmpty());
            answers.add(text(result.getResult()));
        }
        assertEquals(answers.get(1), answers.get(0), query.toString());
        List<Object> refusals = new ArrayList<>();
        for (S store : stores) {
            QueryResult<R> result = store.query(query, at(300), configuration);
            refusals.add(result.getFailureReason());
        }
        assertEquals(refusals.get(1), refusals.get(0));
        stores.get(0).query(query, PositionBound.unbounded(), new QueryConfig(false)).getResult();
    }

    /** RocksDB's store misses the version that is valid at the last time that is asked for, if it is in a later segment. */
    private static void sameUntil(List<VersionedKeyValueStore<String, String>> stores, String key, Instant from, Instant to) {
        Query<VersionedRecordIterator<String>> query =
                MultiVersionedKeyQuery.<String, String>withKey(key).fromTime(from).toTime(to);
        List<List<String>> answers = new ArrayList<>();
        for (StateStore store : stores) {
            String answer = text(store.query(query, PositionBound.unbounded(), new QueryConfig(false)).getResult());
            answers.add(new ArrayList<>(answer.lines().toList()));
        }
        VersionedRecord<String> last = stores.get(1).query(
                VersionedKeyQuery.<String, String>withKey(key).asOf(to), PositionBound.unbounded(), new QueryConfig(false)).getResult();
        if (last != null && !answers.get(1).contains(last.toString())) {
            answers.get(1).add(0, last.toString());
        }
        assertEquals(answers.get(1), answers.get(0));
    }

    private static String text(Object result) {
        if (!(result instanceof Iterator<?> entries)) {
            return String.valueOf(result);
        }
        StringBuilder text = new StringBuilder();
        entries.forEachRemaining(it -> text.append(it).append('\n'));
        if (result instanceof Closeable iterator) {
            try {
                iterator.close();
            } catch (java.io.IOException error) {
                throw new AssertionError(error);
            }
        }
        return text.toString();
    }

    private static void close(List<? extends StateStore> stores) {
        stores.forEach(StateStore::close);
    }

    @Test
    void keysAndRanges() {
        Function<org.apache.kafka.streams.state.KeyValueBytesStoreSupplier, KeyValueStore<String, String>> built =
                it -> Stores.keyValueStoreBuilder(it, TEXT, TEXT).withLoggingDisabled().build();
        List<KeyValueStore<String, String>> stores = stores(
                built.apply(WindrowStores.keyValueStore("store")),
                built.apply(Stores.persistentKeyValueStore("store")),
                (store, key) -> store.put(key, value()));
        for (char end = 'a'; end < 'u'; end++) {
            same(stores, KeyQuery.<String, String>withKey("key " + end));
            same(stores, RangeQuery.<String, String>withRange("key c", "key " + end));
            same(stores, RangeQuery.<String, String>withLowerBound("key " + end));
            same(stores, RangeQuery.<String, String>withUpperBound("key " + end).withDescendingKeys());
        }
        same(stores, RangeQuery.<String, String>withNoBounds());
        close(stores);
    }

    @Test
    void keysAndRangesWithTimestamps() {
        Function<org.apache.kafka.streams.state.KeyValueBytesStoreSupplier, TimestampedKeyValueStore<String, String>> built =
                it -> Stores.timestampedKeyValueStoreBuilder(it, TEXT, TEXT).withLoggingDisabled().build();
        List<TimestampedKeyValueStore<String, String>> stores = stores(
                built.apply(WindrowStores.timestampedKeyValueStore("store")),
                built.apply(Stores.persistentTimestampedKeyValueStore("store")),
                (store, key) -> store.put(key, ValueAndTimestamp.make(value(), random.nextInt(1000))));
        same(stores, KeyQuery.<String, String>withKey("key c"));
        same(stores, TimestampedKeyQuery.<String, String>withKey("key d"));
        same(stores, RangeQuery.<String, String>withNoBounds());
        same(stores, TimestampedRangeQuery.<String, String>withRange("key c", "key h"));
        same(stores, TimestampedRangeQuery.<String, String>withNoBounds().withDescendingKeys());
        close(stores);
    }

    @Test
    void windows() {
        Function<org.apache.kafka.streams.state.WindowBytesStoreSupplier, WindowStore<String, String>> built =
                it -> Stores.windowStoreBuilder(it, TEXT, TEXT).withLoggingDisabled().build();
        List<WindowStore<String, String>> stores = stores(
                built.apply(WindrowStores.windowStore("store", RETENTION, SIZE, false)),
                built.apply(Stores.persistentWindowStore("store", RETENTION, SIZE, false)),
                (store, key) -> store.put(key, value(), random.nextInt(100) * SIZE.toMillis()));
        for (int i = 0; i < 20; i++) {
            Instant from = Instant.ofEpochMilli(random.nextInt(100) * SIZE.toMillis());
            Instant to = from.plus(SIZE.multipliedBy(random.nextInt(60)));
            same(stores, WindowKeyQuery.<String, String>withKeyAndWindowStartRange(key(), from, to));
            same(stores, WindowRangeQuery.<String, String>withWindowStartRange(from, to));
        }
        close(stores);
    }

    @Test
    void sessions() {
        Function<org.apache.kafka.streams.state.SessionBytesStoreSupplier, SessionStore<String, String>> built =
                it -> Stores.sessionStoreBuilder(it, TEXT, TEXT).withLoggingDisabled().build();
        List<SessionStore<String, String>> stores = stores(
                built.apply(WindrowStores.sessionStore("store", RETENTION)),
                built.apply(Stores.persistentSessionStore("store", RETENTION)),
                (store, key) -> {
                    long start = random.nextInt(6_000_000);
                    store.put(new Windowed<>(key, new SessionWindow(start, start + random.nextInt(100_000))), value());
                });
        for (char end = 'a'; end < 'u'; end++) {
            same(stores, WindowRangeQuery.<String, String>withKey("key " + end));
        }
        close(stores);
    }

    @Test
    void versions() {
        Function<org.apache.kafka.streams.state.VersionedBytesStoreSupplier, VersionedKeyValueStore<String, String>> built =
                it -> Stores.versionedKeyValueStoreBuilder(it, TEXT, TEXT).withLoggingDisabled().build();
        List<VersionedKeyValueStore<String, String>> stores = stores(
                built.apply(WindrowStores.versionedKeyValueStore("store", RETENTION)),
                built.apply(Stores.persistentVersionedKeyValueStore("store", RETENTION)),
                (store, key) -> store.put(key, value(), random.nextInt(3_000_000)));
        for (int i = 0; i < 40; i++) {
            String key = key();
            Instant from = Instant.ofEpochMilli(random.nextInt(3_000_000));
            Instant to = from.plusMillis(random.nextInt(1_000_000));
            same(stores, VersionedKeyQuery.<String, String>withKey(key));
            same(stores, VersionedKeyQuery.<String, String>withKey(key).asOf(from));
            same(stores, MultiVersionedKeyQuery.<String, String>withKey(key));
            sameUntil(stores, key, from, to);
            same(stores, MultiVersionedKeyQuery.<String, String>withKey(key).fromTime(from).withAscendingTimestamps());
            same(stores, MultiVersionedKeyQuery.<String, String>withKey(key).withDescendingTimestamps());
        }
        close(stores);
    }
}
