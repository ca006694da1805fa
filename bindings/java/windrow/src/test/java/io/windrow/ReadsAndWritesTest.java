package io.windrow;

import static io.windrow.Tests.b;
import static io.windrow.Tests.fails;
import static io.windrow.Tests.s;
import static io.windrow.Tests.taken;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.ByteBuffer;
import java.nio.ReadOnlyBufferException;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.util.Arrays;
import java.util.List;
import java.util.NoSuchElementException;
import java.util.Optional;
import java.util.OptionalInt;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class ReadsAndWritesTest {
    @TempDir
    Path folder;

    private Database database;
    private Keyspace planets;

    @BeforeEach
    void open() {
        database = Database.open(folder, new Options().mergeOperator("counts", "windrow.add_u64.wrapping"));
        planets = database.keyspace("planets");
    }

    @AfterEach
    void close() {
        database.close();
    }

    @Test
    void valuesOfAllSizesComeBack() {
        for (int bytes : new int[] {0, 1, 255, 256, 257, 1 << 16, 3 << 20}) {
            byte[] key = new byte[Math.min(Math.max(bytes, 1), 1 << 16)];
            Arrays.fill(key, (byte) bytes);
            byte[] value = new byte[bytes];
            Arrays.fill(value, (byte) 7);
            planets.put(key, value);
            assertArrayEquals(value, planets.get(key).orElseThrow());
            Entry entry = planets.first(KeyRange.closed(key, key)).orElseThrow();
            assertArrayEquals(key, entry.key());
            assertArrayEquals(value, entry.value());
        }
        assertEquals(Optional.empty(), planets.get(b("none")));
        fails(ErrorCode.INVALID_ARGUMENT, () -> planets.put(new byte[(1 << 16) + 1], b("")));
        fails(ErrorCode.INVALID_ARGUMENT, () -> planets.get(b("")));
    }

    @Test
    void buffersOfAllKindsAreReadAndFilled() {
        List<ByteBuffer> kinds = List.of(
                ByteBuffer.allocateDirect(64), ByteBuffer.allocate(64), ByteBuffer.allocate(80).slice(8, 64));
        int number = 0;
        for (ByteBuffer keys : kinds) {
            for (ByteBuffer values : kinds) {
                if (keys == values) {
                    continue;
                }
                String text = "key " + number++;
                keys.clear().position(3);
                keys.put(b(text)).flip().position(3);
                values.clear().position(5);
                values.put(b("value of " + text)).flip().position(5);
                planets.put(keys, values);
                assertEquals(3, keys.position());
                assertEquals("value of " + text, s(planets.get(b(text))));
                planets.put(keys.asReadOnlyBuffer(), values.asReadOnlyBuffer());

                values.clear().position(2);
                int length = ("value of " + text).length();
                assertEquals(OptionalInt.of(length), planets.get(keys, values));
                assertEquals(2 + length, values.position());
                values.flip().position(2);
                byte[] found = new byte[length];
                values.get(found);
                assertEquals("value of " + text, s(found));
                // Too little space: only the length.
                values.clear().limit(length - 1);
                assertEquals(OptionalInt.of(length), planets.get(keys, values));
                assertEquals(0, values.position());
                keys.put(3, (byte) 'x');
                assertEquals(OptionalInt.empty(), planets.get(keys, values));
            }
        }
        ByteBuffer readOnly = ByteBuffer.allocateDirect(64).asReadOnlyBuffer();
        assertThrows(ReadOnlyBufferException.class, () -> planets.get(ByteBuffer.wrap(b("key 0")), readOnly));
    }

    @Test
    void cursorsLendWhatStaysAsItIs() {
        for (int i = 0; i < 5000; i++) {
            planets.put(b(String.format("%05d", i)), b("value " + i));
        }
        try (Cursor cursor = planets.cursor(KeyRange.all())) {
            assertThrows(IllegalStateException.class, cursor::key);
            assertTrue(cursor.next());
            ByteBuffer key = cursor.keyBuffer();
            ByteBuffer value = cursor.valueBuffer();
            assertThrows(ReadOnlyBufferException.class, () -> value.put((byte) 0));
            int count = 1;
            while (cursor.next()) {
                count++;
            }
            assertEquals(5000, count);
            assertFalse(cursor.next());
            assertEquals(ByteBuffer.wrap(b("00000")), key);
            assertEquals(ByteBuffer.wrap(b("value 0")), value);
            assertTrue(cursor.seek(b("00100")));
            planets.put(b("001005"), b("new"));
            assertTrue(cursor.next());
            assertEquals("00101", s(cursor.key()));
        }
        try (Entries entries = planets.reverse(KeyRange.before(b("00002")))) {
            assertEquals("00001", s(entries.next().key()));
            assertEquals("00000", s(entries.next().key()));
            assertFalse(entries.hasNext());
            assertThrows(NoSuchElementException.class, entries::next);
        }
        assertEquals("04999", s(planets.last(KeyRange.all()).orElseThrow().key()));
        assertEquals(Optional.empty(), planets.first(KeyRange.prefix(b("x"))));
        assertEquals(100, planets.count(KeyRange.prefix(b("049"))));
        assertEquals(List.of("00007=value 7", "00008=value 8"), taken(planets.entries(KeyRange.closed(b("00007"), b("00008")))));
    }

    @Test
    void entriesExpire() throws InterruptedException {
        planets.put(b("short"), b("1"), Duration.ofMillis(1));
        planets.put(b("long"), b("2"), Duration.ofHours(1));
        planets.put(b("ever"), b("3"));
        database.write(new Batch().put(planets, b("batch"), b("4"), Duration.ofHours(1)));
        Instant soon = Instant.now().plus(Duration.ofMinutes(59));
        assertTrue(planets.expiresAt(b("long")).orElseThrow().isAfter(soon));
        assertTrue(planets.expiresAt(b("batch")).orElseThrow().isAfter(soon));
        assertEquals(Optional.of(Instant.MAX), planets.expiresAt(b("ever")));
        assertEquals(Optional.empty(), planets.expiresAt(b("none")));
        while (planets.contains(b("short"))) {
            Thread.sleep(1);
        }
        assertEquals(List.of("batch=4", "ever=3", "long=2"), taken(planets.entries(KeyRange.all())));
        fails(ErrorCode.INVALID_ARGUMENT, () -> planets.put(b("k"), b("v"), Duration.ofMillis(-1)));
    }

    @Test
    void changesOfOneKeyAreOneStep() throws InterruptedException {
        assertTrue(planets.putIfAbsent(b("count"), b("0")));
        assertFalse(planets.putIfAbsent(b("count"), b("7")));
        assertFalse(planets.compareAndSwap(b("count"), b("1"), b("2")));
        Thread[] threads = new Thread[4];
        for (int i = 0; i < threads.length; i++) {
            threads[i] = new Thread(() -> {
                for (int n = 0; n < 200; n++) {
                    planets.update(b("count"), old -> b(String.valueOf(Integer.parseInt(s(old)) + 1)));
                }
            });
            threads[i].start();
        }
        for (Thread thread : threads) {
            thread.join();
        }
        assertEquals("800", s(planets.take(b("count"))));
        assertEquals(Optional.empty(), planets.take(b("count")));
    }

    @Test
    void operandsAreFolded() {
        Keyspace counts = database.keyspace("counts");
        byte[] two = {2, 0, 0, 0, 0, 0, 0, 0};
        counts.merge(b("a"), two);
        database.write(new Batch().merge(counts, b("a"), two));
        try (Transaction transaction = database.begin(Isolation.SERIALIZABLE)) {
            transaction.merge(counts, b("a"), two);
            assertEquals(6, transaction.get(counts, b("a")).orElseThrow()[0]);
            transaction.commit();
        }
        assertEquals(6, counts.get(b("a")).orElseThrow()[0]);
        counts.merge(b("b"), b("no number"));
        fails(ErrorCode.MERGE, () -> counts.get(b("b")));
        fails(ErrorCode.INVALID_ARGUMENT, () -> Database.open(folder.resolve("other"), new Options().mergeOperator("a", "none")));
    }

    @Test
    void aBatchOfSeveralKeyspacesIsOneWrite() {
        Keyspace moons = database.keyspace("moons");
        Batch batch = new Batch().put(planets, b("mars"), b("red")).put(moons, b("mars"), b("two")).delete(planets, b("pluto"));
        assertEquals(3, batch.size());
        planets.put(b("pluto"), b("?"));
        database.write(batch, Durability.SYNC);
        assertEquals("two", s(moons.get(b("mars"))));
        assertEquals(List.of("mars=red"), taken(planets.entries(KeyRange.all())));
        // A batch with a wrong write has no effect.
        batch.clear();
        batch.put(planets, b("venus"), b("hot")).put(planets, b(""), b("empty key"));
        fails(ErrorCode.INVALID_ARGUMENT, () -> database.write(batch));
        assertFalse(planets.contains(b("venus")));
        try (Database other = Database.open(folder.resolveSibling(folder.getFileName() + "-other"), new Options())) {
            Keyspace foreign = other.keyspace("planets");
            fails(ErrorCode.INVALID_ARGUMENT, () -> database.write(new Batch().put(foreign, b("k"), b("v"))));
        }
    }

    @Test
    void aBatchKeepsWholeWrites() {
        Batch batch = new Batch();
        byte[] large = new byte[50 << 20];
        int added = 0;
        int bytes = 0;
        try {
            // The heap has 256 MiB.
            for (; added < 100; added++) {
                bytes = batch.bytes();
                batch.put(planets, b("key"), large);
            }
        } catch (OutOfMemoryError full) {
            assertEquals(added, batch.size());
            assertEquals(bytes, batch.bytes());
        }
        assertTrue(added < 100);
    }
}
