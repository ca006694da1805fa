package io.windrow;

import static io.windrow.Tests.b;
import static io.windrow.Tests.fails;
import static io.windrow.Tests.s;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.NoSuchElementException;
import java.util.Random;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.atomic.AtomicLong;
import org.junit.jupiter.api.RepeatedTest;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.function.Executable;
import org.junit.jupiter.api.io.TempDir;

/** Whatever a program does wrong is an exception. */
class LifetimeTest {
    @TempDir
    Path folder;

    @Test
    void everyCallAfterTheCloseIsAnError() {
        Database database = Database.open(folder, new Options());
        Keyspace planets = database.keyspace("planets");
        planets.put(b("mars"), b("two"));
        for (int i = 0; i < 100; i++) {
            planets.put(b("x" + i), b("two"));
        }
        Snapshot snapshot = database.snapshot();
        SnapshotView view = planets.at(snapshot);
        Cursor cursor = planets.cursor(KeyRange.all());
        assertTrue(cursor.first());
        Entries entries = planets.entries(KeyRange.all());
        entries.next();
        Transaction transaction = database.begin(Isolation.SERIALIZABLE);
        transaction.put(planets, b("venus"), b("none"));
        Cursor inner = transaction.cursor(planets, KeyRange.all());
        assertTrue(inner.next());
        Savepoint savepoint = transaction.savepoint();
        Batch batch = new Batch().put(planets, b("k"), b("v"));
        ChangeConsumer consumer = database.consumer("index");
        Changes changes = consumer.changes();
        database.close();
        database.close();
        assertTrue(database.isClosed());
        ByteBuffer direct = ByteBuffer.allocateDirect(8).limit(1);
        List<Executable> calls = List.of(
                () -> database.keyspace("planets"),
                () -> database.existingKeyspace("planets"),
                () -> database.keyspaceNames(),
                () -> database.write(batch),
                () -> database.write(new Batch()),
                database::snapshot,
                () -> database.begin(Isolation.SNAPSHOT),
                database::beginLocking,
                database::flush,
                database::persist,
                database::waitIdle,
                database::statistics,
                database::memory,
                database::verify,
                database::preparedTransactions,
                () -> database.checkpoint(folder.resolve("copy")),
                () -> database.backup(Backups.in(folder.resolve("backups"))),
                () -> planets.get(b("mars")),
                () -> planets.get(direct, direct),
                () -> planets.contains(b("mars")),
                () -> planets.multiGet(List.of(b("mars"))),
                () -> planets.expiresAt(b("mars")),
                () -> planets.put(b("mars"), b("?")),
                () -> planets.put(direct, direct),
                () -> planets.delete(b("mars")),
                () -> planets.merge(b("mars"), b("?")),
                () -> planets.take(b("mars")),
                () -> planets.update(b("mars"), old -> old),
                () -> planets.deleteRange(KeyRange.all()),
                () -> planets.cursor(KeyRange.all()),
                () -> planets.entries(KeyRange.all()),
                () -> planets.count(KeyRange.all()),
                () -> planets.compact(KeyRange.all()),
                () -> planets.delete(direct),
                () -> planets.merge(direct, direct),
                () -> planets.contains(direct),
                () -> planets.bulkLoad(List.<Entry>of().iterator()),
                () -> planets.bulkLoadUnsorted(List.<Entry>of().iterator(), 1 << 20),
                () -> database.changes(1),
                () -> database.consumer("index"),
                () -> database.consumers(),
                () -> database.removeConsumer("index"),
                consumer::acknowledged,
                () -> consumer.acknowledge(1),
                consumer::changes,
                () -> changes.poll(Duration.ZERO),
                changes::hasNext,
                changes::position,
                snapshot::sequence,
                () -> transaction.get(planets, direct, direct),
                () -> transaction.put(planets, direct, direct),
                planets::name,
                planets::options,
                () -> planets.at(snapshot),
                () -> view.get(b("mars")),
                () -> view.cursor(KeyRange.all()),
                cursor::next,
                cursor::key,
                cursor::first,
                entries::hasNext,
                () -> transaction.get(planets, b("mars")),
                () -> transaction.put(planets, b("mars"), b("?")),
                () -> transaction.cursor(planets, KeyRange.all()),
                transaction::savepoint,
                () -> transaction.rollBackTo(savepoint),
                transaction::commit,
                transaction::rollBack,
                inner::next,
                inner::key);
        for (int i = 0; i < calls.size(); i++) {
            WindrowException error = assertThrows(WindrowException.class, calls.get(i), "call " + i);
            assertEquals(ErrorCode.CLOSED, error.code(), "call " + i);
        }
        // Closes are no errors, and may come twice.
        for (AutoCloseable object : List.of(view, snapshot, cursor, entries, inner, transaction, changes, consumer, database)) {
            assertEquals(null, closed(object));
            assertEquals(null, closed(object));
        }
        try (Database again = Database.open(folder, new Options())) {
            assertEquals("two", s(again.keyspace("planets").get(b("mars"))));
        }
    }

    private static Exception closed(AutoCloseable object) {
        try {
            object.close();
            return null;
        } catch (Exception error) {
            return error;
        }
    }

    @Test
    void aClosedObjectLeavesTheOthersOpen() {
        try (Database database = Database.open(folder, new Options())) {
            Keyspace planets = database.keyspace("planets");
            planets.put(b("mars"), b("two"));
            Snapshot snapshot = database.snapshot();
            SnapshotView view = planets.at(snapshot);
            snapshot.close();
            fails(ErrorCode.CLOSED, () -> planets.at(snapshot));
            assertEquals("two", s(view.get(b("mars"))));
            Cursor cursor = view.cursor(KeyRange.all());
            view.close();
            fails(ErrorCode.CLOSED, () -> view.get(b("mars")));
            assertTrue(cursor.next());
            cursor.close();
            fails(ErrorCode.CLOSED, cursor::next);
            fails(ErrorCode.CLOSED, cursor::value);
            Entries entries = planets.entries(KeyRange.all());
            entries.close();
            assertEquals(false, entries.hasNext());
        }
    }

    @Test
    void nullsAndForeignObjectsAreErrors() {
        try (Database database = Database.open(folder, new Options());
                Database other = Database.open(folder.resolveSibling(folder.getFileName() + "-other"), new Options())) {
            Keyspace planets = database.keyspace("planets");
            Keyspace foreign = other.keyspace("planets");
            for (Executable call : List.<Executable>of(
                    () -> planets.get((byte[]) null),
                    () -> planets.put(null, b("v")),
                    () -> planets.put(b("k"), (byte[]) null),
                    () -> planets.delete((byte[]) null),
                    () -> planets.merge(b("k"), null),
                    () -> planets.entries(null),
                    () -> planets.compareAndSwap(null, null, null),
                    () -> planets.multiGet(java.util.Arrays.asList(b("k"), null)),
                    () -> database.keyspace(null),
                    () -> database.write(null),
                    () -> new Batch().put(null, b("k"), b("v")),
                    () -> Database.open(null, new Options()),
                    () -> Database.open(folder, null))) {
                assertThrows(NullPointerException.class, call);
            }
            fails(ErrorCode.INVALID_ARGUMENT, () -> foreign.at(database.snapshot()));
            try (Transaction transaction = database.begin(Isolation.SNAPSHOT)) {
                fails(ErrorCode.INVALID_ARGUMENT, () -> transaction.put(foreign, b("k"), b("v")));
            }
            fails(ErrorCode.LOCKED, () -> Database.open(folder, new Options()));
            fails(ErrorCode.INVALID_ARGUMENT, () -> planets.rename(""));
        }
    }

    /** All kinds of objects are used by some threads and closed by others, and the database in the middle of it. */
    @RepeatedTest(20)
    void closesInOtherThreadsAreExceptions() throws InterruptedException {
        Database database = Database.open(folder, new Options());
        Keyspace planets = database.keyspace("planets");
        for (int i = 0; i < 2000; i++) {
            planets.put(b(String.format("%06d", i)), b("value " + i));
        }
        ConcurrentLinkedQueue<AutoCloseable> shared = new ConcurrentLinkedQueue<>();
        ConcurrentLinkedQueue<Throwable> wrong = new ConcurrentLinkedQueue<>();
        AtomicLong calls = new AtomicLong();
        List<Thread> threads = new ArrayList<>();
        for (int number = 0; number < 4; number++) {
            Random random = new Random(number);
            Thread thread = new Thread(() -> {
                try {
                    while (!database.isClosed()) {
                        work(random, database, planets, shared);
                        calls.incrementAndGet();
                    }
                } catch (Throwable error) {
                    wrong.add(error);
                }
            });
            threads.add(thread);
            thread.start();
        }
        while (calls.get() < 2000 && wrong.isEmpty()) {
            Thread.onSpinWait();
        }
        database.close();
        for (Thread thread : threads) {
            thread.join();
        }
        wrong.forEach(Throwable::printStackTrace);
        assertTrue(wrong.isEmpty());
    }

    private static void work(
            Random random, Database database, Keyspace planets, ConcurrentLinkedQueue<AutoCloseable> shared) throws Exception {
        try {
            byte[] key = b(String.format("%06d", random.nextInt(2000)));
            switch (random.nextInt(9)) {
                case 0 -> shared.add(database.snapshot());
                case 1 -> shared.add(planets.cursor(KeyRange.from(key)));
                case 2 -> shared.add(database.begin(Isolation.SNAPSHOT));
                case 3 -> shared.add(planets.entries(KeyRange.from(key)));
                case 4 -> planets.put(key, b("other"));
                case 5 -> planets.get(key);
                case 6 -> {
                    AutoCloseable object = shared.poll();
                    if (object != null) {
                        object.close();
                    }
                }
                default -> {
                    AutoCloseable object = shared.peek();
                    if (object instanceof Cursor cursor) {
                        for (int i = 0; i < 20 && cursor.next(); i++) {
                            cursor.valueBuffer();
                        }
                    } else if (object instanceof Entries entries) {
                        for (int i = 0; i < 20 && entries.hasNext(); i++) {
                            entries.next();
                        }
                    } else if (object instanceof Transaction transaction) {
                        transaction.put(planets, key, b("new"));
                        transaction.get(planets, key);
                    } else if (object instanceof Snapshot snapshot) {
                        try (SnapshotView view = planets.at(snapshot)) {
                            view.get(key);
                        }
                    }
                }
            }
        } catch (WindrowException error) {
            assertEquals(ErrorCode.CLOSED, error.code(), error.getMessage());
        } catch (IllegalStateException | NoSuchElementException moved) {
            // Another thread has moved the same cursor, which is for one thread at a time.
            return;
        }
    }

    @Test
    void objectsThatNobodyClosesAreFreed() throws InterruptedException {
        for (int i = 0; i < 20; i++) {
            Database database = Database.open(folder.resolve("lost"), new Options());
            Keyspace planets = database.keyspace("planets");
            planets.put(b("round"), b(String.valueOf(i)));
            assertTrue(planets.cursor(KeyRange.all()).next());
            database.begin(Isolation.SERIALIZABLE).put(planets, b("never"), b("committed"));
            planets.at(database.snapshot());
            planets = null;
            database = null;
            // The next open succeeds when the database was found and freed.
            for (int tries = 0; ; tries++) {
                System.gc();
                try (Database again = Database.open(folder.resolve("lost"), new Options())) {
                    assertEquals(String.valueOf(i), s(again.keyspace("planets").get(b("round"))));
                    assertEquals(false, again.keyspace("planets").contains(b("never")));
                    break;
                } catch (WindrowException locked) {
                    assertEquals(ErrorCode.LOCKED, locked.code());
                    assertTrue(tries < 1000, "the database was never freed");
                    Thread.sleep(10);
                }
            }
        }
    }
}
