package io.windrow.kafka.streams;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.function.Function;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.DslStoreFormat;
import org.apache.kafka.streams.kstream.EmitStrategy;
import org.apache.kafka.streams.kstream.Windowed;
import org.apache.kafka.streams.kstream.internals.SessionWindow;
import org.apache.kafka.streams.processor.StateStore;
import org.apache.kafka.streams.state.BuiltInDslStoreSuppliers.RocksDBDslStoreSuppliers;
import org.apache.kafka.streams.state.DslSessionParams;
import org.apache.kafka.streams.state.DslWindowParams;
import org.apache.kafka.streams.state.KeyValueIterator;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.SessionStore;
import org.apache.kafka.streams.state.Stores;
import org.apache.kafka.streams.state.WindowStore;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Random calls have the answers of Kafka's stores on RocksDB, in the same order. For ranges of windows and sessions this holds
 * for keys of one length: if a key is the beginning of another, RocksDB's stores miss some of it, and then the answers are
 * those of the stores in memory, in any order.
 */
class LikeRocksTest {
    private static final Duration RETENTION = Duration.ofMinutes(5);
    private static final Duration SIZE = Duration.ofMinutes(1);

    @TempDir
    Path folder;

    private Random random;
    /** The time moves on, and records come late. */
    private long time;
    private boolean isOfOneLength = true;
    private boolean isKeyValue;

    @ParameterizedTest
    @ValueSource(longs = {1, 2, 3})
    void keyValueStores(long seed) {
        random = new Random(seed);
        isKeyValue = true;
        KeyValueStore<Bytes, byte[]> own = WindrowStores.keyValueStore("store").get();
        KeyValueStore<Bytes, byte[]> rocks = Stores.persistentKeyValueStore("store").get();
        compared(own, rocks, () -> {
            Bytes key = key();
            byte[] value = value();
            switch (random.nextInt(8)) {
                case 0, 1, 2 -> {
                    own.put(key, value);
                    rocks.put(key, value);
                }
                case 3 -> assertArrayEquals(rocks.delete(key), own.delete(key));
                case 4 -> assertArrayEquals(rocks.putIfAbsent(key, value), own.putIfAbsent(key, value));
                case 5 -> assertArrayEquals(rocks.get(key), own.get(key));
                case 6 -> {
                    // Behind a prefix that ends with 255, RocksDB's store gives one key too many.
                    Bytes prefix = key.get()[key.get().length - 1] == -1 ? Bytes.wrap(new byte[] {'a'}) : key;
                    same(own, rocks, store -> store.prefixScan(prefix, Serdes.Bytes().serializer()));
                }
                default -> {
                    Bytes from = bound();
                    Bytes to = bound();
                    same(own, rocks, store -> store.range(from, to));
                    same(own, rocks, store -> store.reverseRange(from, to));
                    same(own, rocks, KeyValueStore::all);
                    same(own, rocks, KeyValueStore::reverseAll);
                }
            }
        });
    }

    @ParameterizedTest
    @ValueSource(longs = {1, 2, 3, 4, 5, 6, 7, 8})
    void windowStores(long seed) {
        random = new Random(seed);
        isOfOneLength = seed <= 4;
        boolean duplicates = isOfOneLength && seed % 2 == 0;
        WindowStore<Bytes, byte[]> own = WindrowStores.windowStore("store", RETENTION, SIZE, duplicates).get();
        WindowStore<Bytes, byte[]> rocks = isOfOneLength
                ? Stores.persistentWindowStore("store", RETENTION, SIZE, duplicates).get()
                : Stores.inMemoryWindowStore("store", RETENTION, SIZE, duplicates).get();
        compared(own, rocks, () -> {
            Bytes key = key();
            long from = time();
            long to = random.nextInt(10) == 0 ? Long.MAX_VALUE : from + random.nextInt(400_000) - 50_000;
            switch (random.nextInt(6)) {
                case 0, 1, 2 -> {
                    byte[] value = value();
                    long at = time();
                    own.put(key, value, at);
                    rocks.put(key, value, at);
                    assertArrayEquals(rocks.fetch(key, at), own.fetch(key, at));
                }
                case 3 -> {
                    same(own, rocks, store -> store.fetch(key, from, to));
                    same(own, rocks, store -> store.backwardFetch(key, from, to));
                }
                case 4 -> {
                    Bytes first = bound();
                    Bytes last = bound();
                    same(own, rocks, store -> store.fetch(first, last, from, to));
                    same(own, rocks, store -> store.backwardFetch(first, last, from, to));
                }
                default -> {
                    same(own, rocks, WindowStore::all);
                    same(own, rocks, WindowStore::backwardAll);
                    same(own, rocks, store -> store.fetchAll(from, to));
                    same(own, rocks, store -> store.backwardFetchAll(from, to));
                }
            }
        });
    }

    @ParameterizedTest
    @ValueSource(longs = {1, 2, 3, 4, 5})
    void sessionStores(long seed) {
        random = new Random(seed);
        isOfOneLength = seed <= 3;
        SessionStore<Bytes, byte[]> own = WindrowStores.sessionStore("store", RETENTION).get();
        SessionStore<Bytes, byte[]> rocks = isOfOneLength
                ? Stores.persistentSessionStore("store", RETENTION).get()
                : Stores.inMemorySessionStore("store", RETENTION).get();
        compared(own, rocks, () -> {
            Bytes key = key();
            long start = time();
            long end = start + random.nextInt(60_000);
            Windowed<Bytes> session = new Windowed<>(key, new SessionWindow(start, end));
            long earliestEnd = time();
            long latestStart = earliestEnd + random.nextInt(200_000);
            // A removal does not move the time of the store in memory.
            int choice = random.nextInt(7);
            switch (choice == 3 && !isOfOneLength ? 0 : choice) {
                case 0, 1, 2 -> {
                    byte[] value = isOfOneLength ? value() : key.get();
                    own.put(session, value);
                    rocks.put(session, value);
                    assertArrayEquals(rocks.fetchSession(key, start, end), own.fetchSession(key, start, end));
                }
                case 3 -> {
                    own.remove(session);
                    rocks.remove(session);
                }
                case 4 -> {
                    same(own, rocks, store -> store.findSessions(key, earliestEnd, latestStart));
                    same(own, rocks, store -> store.backwardFindSessions(key, earliestEnd, latestStart));
                    same(own, rocks, store -> store.fetch(key));
                    same(own, rocks, store -> store.backwardFetch(key));
                }
                default -> {
                    Bytes first = bound();
                    Bytes last = bound();
                    same(own, rocks, store -> store.findSessions(first, last, earliestEnd, latestStart));
                    same(own, rocks, store -> store.backwardFindSessions(first, last, earliestEnd, latestStart));
                    // The store in memory refuses such a range here.
                    if (first == null || last == null || first.compareTo(last) <= 0) {
                        same(own, rocks, store -> store.fetch(first, last));
                        same(own, rocks, store -> store.backwardFetch(first, last));
                    }
                }
            }
        });
    }

    /** Stores for results that come when a window closes give them in the order of time, and those of a key as others. */
    @ParameterizedTest
    @ValueSource(longs = {1, 2})
    void windowStoresByTime(long seed) {
        random = new Random(seed);
        DslWindowParams parameters = new DslWindowParams(
                "store", Duration.ofHours(2), SIZE, false, EmitStrategy.onWindowClose(), seed == 1, DslStoreFormat.TIMESTAMPED);
        WindowStore<Bytes, byte[]> own = new WindrowStoreSuppliers().windowStore(parameters).get();
        WindowStore<Bytes, byte[]> rocks = new RocksDBDslStoreSuppliers().windowStore(parameters).get();
        compared(own, rocks, () -> {
            Bytes key = key();
            long from = time();
            long to = from + random.nextInt(400_000);
            byte[] value = value();
            own.put(key, value, from);
            rocks.put(key, value, from);
            same(own, rocks, store -> store.fetch(key, from, to));
            same(own, rocks, store -> store.backwardFetch(key, from, to));
            same(own, rocks, store -> store.fetchAll(from, to));
            same(own, rocks, store -> store.backwardFetchAll(from, to));
            same(own, rocks, WindowStore::all);
        });
    }

    @ParameterizedTest
    @ValueSource(longs = {1, 2})
    void sessionStoresByTime(long seed) {
        random = new Random(seed);
        DslSessionParams parameters = new DslSessionParams(
                "store", Duration.ofHours(2), EmitStrategy.onWindowClose(), DslStoreFormat.PLAIN);
        SessionStore<Bytes, byte[]> own = new WindrowStoreSuppliers().sessionStore(parameters).get();
        SessionStore<Bytes, byte[]> rocks = new RocksDBDslStoreSuppliers().sessionStore(parameters).get();
        compared(own, rocks, () -> {
            Bytes key = key();
            long start = time();
            // Many of them end at one time.
            long end = start + 30_000 - start % 10_000;
            byte[] value = value();
            Windowed<Bytes> session = new Windowed<>(key, new SessionWindow(start, end));
            own.put(session, value);
            rocks.put(session, value);
            same(own, rocks, store -> store.findSessions(start, start + 100_000));
            same(own, rocks, store -> store.findSessions(key, start - 20_000, end));
        });
    }

    private void compared(StateStore own, StateStore rocks, Runnable step) {
        for (StateStore store : new StateStore[] {own, rocks}) {
            Path task = folder.resolve(store == own ? "own" : "rocks");
            assertTrue(task.toFile().isDirectory() || task.toFile().mkdirs());
            store.init(Contexts.in(task.toFile()), store);
        }
        for (int i = 0; i < 600; i++) {
            step.run();
            if (random.nextInt(100) == 0) {
                own.commit(Map.of());
                rocks.commit(Map.of());
            }
        }
        own.close();
        rocks.close();
    }

    private <S, K> void same(S own, S rocks, Function<S, KeyValueIterator<K, byte[]>> call) {
        List<String> expected = texts(call.apply(rocks));
        List<String> found = texts(call.apply(own));
        if (!isOfOneLength) {
            expected.sort(null);
            found.sort(null);
        }
        assertEquals(expected, found);
    }

    private static <K> List<String> texts(KeyValueIterator<K, byte[]> entries) {
        List<String> texts = new ArrayList<>();
        try (entries) {
            while (entries.hasNext()) {
                K key = entries.peekNextKey();
                var entry = entries.next();
                assertEquals(key, entry.key);
                texts.add(entry.key + "=" + new String(entry.value));
            }
        }
        return texts;
    }

    private Bytes key() {
        byte[] key = new byte[isOfOneLength && !isKeyValue ? 2 : 1 + random.nextInt(3)];
        for (int i = 0; i < key.length; i++) {
            key[i] = new byte[] {0, 1, 'a', 127, -1}[random.nextInt(5)];
        }
        return Bytes.wrap(key);
    }

    private Bytes bound() {
        return random.nextInt(4) == 0 ? null : key();
    }

    private byte[] value() {
        return random.nextInt(6) == 0 ? null : ("value " + random.nextInt(1000)).getBytes();
    }

    private long time() {
        time += random.nextInt(4_000);
        return Math.max(0, time - random.nextInt(400_000));
    }
}
