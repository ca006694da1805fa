package io.windrow;

import static io.windrow.Tests.b;
import static io.windrow.Tests.fails;
import static io.windrow.Tests.s;
import static io.windrow.Tests.taken;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Path;
import java.util.Iterator;
import java.util.List;
import java.util.Random;
import java.util.TreeMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.IntFunction;
import java.util.stream.IntStream;
import org.junit.jupiter.api.RepeatedTest;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class LoadsTest {
    @TempDir
    Path folder;

    private static Entry entry(int number) {
        return new Entry(b(String.format("%08d", number)), b("value " + number));
    }

    /** So many entries that a function makes. */
    private static Iterator<Entry> entries(int count, IntFunction<Entry> entry) {
        return IntStream.range(0, count).mapToObj(entry).iterator();
    }

    @Test
    void aSortedLoadAddsAllAtOnce() {
        try (Database database = Database.open(folder, new Options())) {
            Keyspace squares = database.keyspace("squares");
            squares.put(entry(5).key(), b("before"));
            assertEquals(0, squares.bulkLoad(List.<Entry>of().iterator()));
            long loaded = squares.bulkLoad(entries(200_000, number -> {
                if (number == 100_000) {
                    // Nothing is there before the end, and the source may read and write.
                    assertEquals("before", s(squares.get(entry(5).key())));
                    assertEquals(1, squares.count(KeyRange.all()));
                    database.keyspace("others").put(b("k"), b("v"));
                }
                return entry(number);
            }));
            assertEquals(200_000, loaded);
            assertEquals(200_000, squares.count(KeyRange.all()));
            assertEquals("value 5", s(squares.get(entry(5).key())));
        }
        try (Database database = Database.openReadOnly(folder, new Options())) {
            assertEquals("value 199999", s(database.keyspace("squares").get(entry(199_999).key())));
        }
    }

    @Test
    void anUnsortedLoadSortsAndKeepsTheLastOfEqualKeys() {
        Random random = new Random(7);
        TreeMap<String, String> model = new TreeMap<>();
        try (Database database = Database.open(folder, new Options())) {
            Keyspace mixed = database.keyspace("mixed");
            assertEquals(30_000, mixed.bulkLoadUnsorted(entries(50_000, number -> {
                String key = "k" + (number < 30_000 ? number * 7919L % 30_000 : random.nextInt(30_000));
                String value = "v" + number;
                model.put(key, value);
                return new Entry(b(key), b(value));
            }), 64 << 10));
            List<String> expected = model.entrySet().stream().map(entry -> entry.getKey() + "=" + entry.getValue()).toList();
            assertEquals(expected, taken(mixed.entries(KeyRange.all())));
            fails(ErrorCode.INVALID_ARGUMENT, () -> mixed.bulkLoadUnsorted(entries(1, LoadsTest::entry), -1));
        }
    }

    @Test
    void aLoadThatFailsAddsNothing() {
        try (Database database = Database.open(folder, new Options())) {
            Keyspace squares = database.keyspace("squares");
            fails(ErrorCode.INVALID_ARGUMENT, () -> squares.bulkLoad(entries(50_000, number -> entry(number % 40_000))));
            fails(ErrorCode.INVALID_ARGUMENT, () -> squares.bulkLoad(List.of(new Entry(b(""), b("v"))).iterator()));
            IllegalStateException own = new IllegalStateException("of the source");
            IllegalStateException thrown = assertThrows(IllegalStateException.class, () -> squares.bulkLoad(entries(50_000, number -> {
                if (number == 40_000) {
                    throw own;
                }
                return entry(number);
            })));
            assertSame(own, thrown);
            assertThrows(NullPointerException.class, () -> squares.bulkLoad(entries(10, number -> number == 5 ? null : entry(number))));
            assertThrows(NullPointerException.class, () -> squares.bulkLoad(null));
            assertEquals(0, squares.count(KeyRange.all()));
            database.dropKeyspace("squares");
            fails(ErrorCode.NOT_FOUND, () -> squares.bulkLoad(entries(10, LoadsTest::entry)));
        }
    }

    @Test
    void theSourceCannotWaitForTheLoadButMayLoadElsewhere() {
        try (Database database = Database.open(folder, new Options())) {
            Keyspace outer = database.keyspace("outer");
            Keyspace inner = database.keyspace("inner");
            outer.bulkLoad(entries(3, number -> {
                fails(ErrorCode.INVALID_ARGUMENT, database::waitIdle);
                inner.bulkLoad(entries(number, LoadsTest::entry));
                fails(ErrorCode.INVALID_ARGUMENT, database::waitIdle);
                return entry(number);
            }));
            database.waitIdle();
            assertEquals(2, inner.count(KeyRange.all()));
        }
    }

    @Test
    void aSourceThatClosesTheDatabaseEndsTheLoad() {
        Database database = Database.open(folder, new Options());
        Keyspace squares = database.keyspace("squares");
        fails(ErrorCode.CLOSED, () -> squares.bulkLoad(entries(50_000, number -> {
            if (number == 20_000) {
                database.close();
            }
            return entry(number);
        })));
        try (Database again = Database.open(folder, new Options())) {
            assertEquals(0, again.keyspace("squares").count(KeyRange.all()));
        }
    }

    @RepeatedTest(10)
    void aCloseInAnotherThreadEndsTheLoad() throws InterruptedException {
        Database database = Database.open(folder, new Options());
        Keyspace squares = database.keyspace("squares");
        CountDownLatch begun = new CountDownLatch(1);
        AtomicReference<Throwable> thrown = new AtomicReference<>();
        // It has no end.
        Iterator<Entry> endless = new Iterator<>() {
            private int next;

            @Override
            public boolean hasNext() {
                return true;
            }

            @Override
            public Entry next() {
                if (next == 10_000) {
                    begun.countDown();
                }
                return entry(next++);
            }
        };
        Thread loading = new Thread(() -> {
            try {
                squares.bulkLoad(endless);
            } catch (Throwable error) {
                thrown.set(error);
            }
        });
        loading.start();
        begun.await();
        database.close();
        loading.join();
        assertEquals(ErrorCode.CLOSED, ((WindrowException) thrown.get()).code());
        try (Database again = Database.open(folder, new Options())) {
            assertEquals(0, again.keyspace("squares").count(KeyRange.all()));
            assertTrue(again.verify().isEmpty());
        }
    }
}
