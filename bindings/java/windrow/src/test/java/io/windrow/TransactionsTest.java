package io.windrow;

import static io.windrow.Tests.b;
import static io.windrow.Tests.fails;
import static io.windrow.Tests.s;
import static io.windrow.Tests.taken;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Optional;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class TransactionsTest {
    @TempDir
    Path folder;

    private Database database;
    private Keyspace stock;

    @BeforeEach
    void open() {
        database = Database.open(folder, new Options().lockTimeout(Duration.ofMillis(10)));
        stock = database.keyspace("stock");
        stock.put(b("apples"), b("3"));
    }

    @AfterEach
    void close() {
        database.close();
    }

    @Test
    void aConflictNamesTheKey() {
        Transaction transaction = database.begin(Isolation.SERIALIZABLE);
        assertEquals("3", s(transaction.get(stock, b("apples"))));
        transaction.put(stock, b("pears"), b("1"));
        stock.put(b("apples"), b("2"));
        WindrowException conflict = fails(ErrorCode.CONFLICT, transaction::commit);
        assertEquals(Optional.of("stock"), conflict.keyspace());
        assertEquals("apples", s(conflict.key()));
        fails(ErrorCode.CLOSED, transaction::commit);
        fails(ErrorCode.CLOSED, () -> transaction.get(stock, b("apples")));
        assertEquals(Optional.empty(), stock.get(b("pears")));
    }

    @Test
    void savepointsUndoWhatCameAfter() {
        try (Transaction transaction = database.begin(Isolation.SNAPSHOT)) {
            transaction.put(stock, b("pears"), b("1"));
            Savepoint savepoint = transaction.savepoint();
            transaction.delete(stock, b("apples"));
            transaction.put(stock, b("plums"), b("9"), Duration.ofHours(1));
            Savepoint later = transaction.savepoint();
            transaction.rollBackTo(savepoint);
            fails(ErrorCode.INVALID_ARGUMENT, () -> transaction.rollBackTo(later));
            transaction.rollBackTo(savepoint);
            assertEquals(List.of("apples=3", "pears=1"), taken(transaction.entries(stock, KeyRange.all())));
            try (Transaction other = database.begin(Isolation.SNAPSHOT)) {
                fails(ErrorCode.INVALID_ARGUMENT, () -> other.rollBackTo(savepoint));
            }
            transaction.commit(Durability.SYNC);
        }
        assertEquals(List.of("apples=3", "pears=1"), taken(stock.entries(KeyRange.all())));
    }

    @Test
    void aCommitDependsOnNoMoreThanCursorsHavePassed() {
        for (String key : List.of("b", "c", "d")) {
            stock.put(b(key), b("1"));
        }
        try (Transaction transaction = database.begin(Isolation.SERIALIZABLE);
                Entries entries = transaction.entries(stock, KeyRange.from(b("b")))) {
            assertEquals("b", s(entries.next().key()));
            transaction.put(stock, b("x"), b("1"));
            stock.put(b("d"), b("2"));
            entries.close();
            transaction.commit();
        }
        assertEquals("1", s(stock.get(b("x"))));
    }

    @Test
    void aLockIsRefusedInTime() {
        try (Transaction first = database.beginLocking();
                Transaction second = database.beginLocking(Duration.ZERO)) {
            first.getForUpdate(stock, b("apples"));
            WindrowException late = fails(ErrorCode.TIMED_OUT, () -> second.put(stock, b("apples"), b("1")));
            assertEquals("apples", s(late.key()));
            first.put(stock, b("apples"), b("1"));
            first.commit();
        }
        assertEquals("1", s(stock.get(b("apples"))));
        try (Transaction one = database.beginLocking();
                Transaction two = database.beginLocking()) {
            one.getForShare(stock, b("apples"));
            two.getForShare(stock, b("apples"));
        }
    }

    @Test
    void aPreparedTransactionSurvivesAReopen() {
        Transaction transaction = database.begin(Isolation.SERIALIZABLE);
        transaction.put(stock, b("apples"), b("2"));
        transaction.prepare("order 17");
        fails(ErrorCode.CLOSED, transaction::rollBack);
        database.close();
        database = Database.open(folder, new Options());
        stock = database.keyspace("stock");
        assertEquals("3", s(stock.get(b("apples"))));
        assertEquals(List.of("order 17"), database.preparedTransactions());
        database.commitPrepared("order 17");
        assertEquals("2", s(stock.get(b("apples"))));
    }

    @Test
    void preparedTransactionsEndByTheirNames() {
        for (String name : List.of("kept", "dropped")) {
            Transaction transaction = database.begin(Isolation.SERIALIZABLE);
            transaction.put(stock, b(name), b("1"));
            transaction.prepare(name);
        }
        assertEquals(List.of("dropped", "kept"), database.preparedTransactions().stream().sorted().toList());
        fails(ErrorCode.CONFLICT, () -> stock.put(b("kept"), b("2")));
        database.commitPrepared("kept");
        database.rollBackPrepared("dropped");
        fails(ErrorCode.NOT_FOUND, () -> database.commitPrepared("kept"));
        assertEquals(List.of("apples=3", "kept=1"), taken(stock.entries(KeyRange.all())));
    }

    @Test
    void transactTriesAgainAfterAConflict() throws InterruptedException {
        stock.put(b("count"), b("0"));
        Thread[] threads = new Thread[4];
        for (int i = 0; i < threads.length; i++) {
            threads[i] = new Thread(() -> {
                for (int n = 0; n < 100; n++) {
                    database.transact(transaction -> {
                        int count = Integer.parseInt(s(transaction.get(stock, b("count"))));
                        transaction.put(stock, b("count"), b(String.valueOf(count + 1)));
                        return count;
                    });
                }
            });
            threads[i].start();
        }
        for (Thread thread : threads) {
            thread.join();
        }
        assertEquals("400", s(stock.get(b("count"))));
        assertThrows(IllegalStateException.class, () -> database.transact(transaction -> {
            transaction.put(stock, b("count"), b("7"));
            throw new IllegalStateException();
        }));
        assertEquals("400", s(stock.get(b("count"))));
    }
}
