package io.windrow;

import static io.windrow.Tests.b;
import static io.windrow.Tests.fails;
import static io.windrow.Tests.s;
import static io.windrow.Tests.taken;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.NoSuchElementException;
import java.util.Optional;
import java.util.Random;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class ChangesTest {
    @TempDir
    Path folder;

    /** The changes that are there, as texts. */
    private static List<String> there(Changes changes) {
        List<String> texts = new ArrayList<>();
        while (changes.hasNext()) {
            long position = changes.position();
            Change change = changes.next();
            assertTrue(position <= change.sequence() && changes.position() > change.sequence());
            texts.add(text(change));
        }
        assertThrows(NoSuchElementException.class, changes::next);
        return texts;
    }

    private static String text(Change change) {
        if (change instanceof Change.BatchWritten batch) {
            assertTrue(batch.firstSequence() <= batch.sequence());
            List<String> writes = new ArrayList<>();
            batch.writes().forEach(write -> writes.add(text(write)));
            return String.join(" ", writes);
        } else if (change instanceof Change.KeyspaceCreated created) {
            return "created " + created.name();
        } else if (change instanceof Change.KeyspaceDropped dropped) {
            return "dropped " + dropped.name();
        } else if (change instanceof Change.KeyspaceRenamed renamed) {
            return "renamed " + renamed.from() + " to " + renamed.to();
        }
        return "tables of " + ((Change.TablesAdded) change).keyspaces();
    }

    private static String text(Write write) {
        if (write instanceof Write.Put put) {
            return write.keyspace() + ":" + s(put.key()) + "=" + s(put.value()) + (put.expiresAt().equals(Instant.MAX) ? "" : "~");
        } else if (write instanceof Write.Delete delete) {
            return write.keyspace() + ":-" + s(delete.key());
        } else if (write instanceof Write.Merge merge) {
            return write.keyspace() + ":" + s(merge.key()) + "+" + s(merge.operand());
        }
        KeyRange range = ((Write.DeleteRange) write).range();
        return write.keyspace() + ":-" + s(range.start()) + ".." + s(range.end());
    }

    @Test
    void allKindsOfChangesComeInTheirOrder() {
        Options options = new Options().mergeOperator("b", "windrow.append.2c");
        try (Database database = Database.open(folder, options)) {
            try (ChangeConsumer consumer = database.consumer("test"); Changes changes = consumer.changes()) {
                assertFalse(changes.hasNext());
                Keyspace a = database.keyspace("a");
                Keyspace other = database.keyspace("b");
                a.put(b("k"), b("v"));
                Instant before = Instant.now();
                a.put(b("t"), b("v"), Duration.ofHours(1));
                database.write(new Batch()
                        .put(a, b("x"), b("1"))
                        .delete(a, b("k"))
                        .merge(other, b("m"), b("o"))
                        .deleteRange(a, KeyRange.between(b("c"), b("d")))
                        .deleteRange(other, KeyRange.from(b("y"))));
                a.rename("c");
                other.bulkLoad(List.of(new Entry(b("l"), b("loaded"))).iterator());
                assertEquals(
                        List.of(
                                "created a",
                                "created b",
                                "a:k=v",
                                "a:t=v~",
                                "a:x=1 a:-k b:m+o a:-c..d b:-y..null",
                                "renamed a to c",
                                "tables of [b]"),
                        there(changes));
                database.dropKeyspace("b");
                assertEquals(List.of("dropped b"), there(changes));
                assertEquals(Optional.empty(), changes.poll(Duration.ZERO));
                try (Changes again = database.changes(1)) {
                    Write.Put put = again.poll(Duration.ZERO)
                            .filter(Change.BatchWritten.class::isInstance)
                            .map(change -> (Write.Put) ((Change.BatchWritten) change).writes().get(0))
                            .orElse(null);
                    assertTrue(put == null || put.expiresAt().isAfter(before));
                }
                fails(ErrorCode.INVALID_ARGUMENT, () -> database.changes(-1));
                fails(ErrorCode.INVALID_ARGUMENT, () -> database.changes(Long.MAX_VALUE));
                fails(ErrorCode.INVALID_ARGUMENT, () -> changes.poll(Duration.ofMillis(-1)));
            }
        }
    }

    @Test
    void aCopyThatFollowsIsEqual() {
        Random random = new Random(11);
        try (Database source = Database.open(folder.resolve("source"), new Options());
                Database target = Database.open(folder.resolve("target"), new Options());
                ChangeConsumer consumer = source.consumer("copy")) {
            Keyspace from = source.keyspace("entries");
            Keyspace to = target.keyspace("entries");
            for (int round = 0; round < 20; round++) {
                for (int i = 0; i < 200; i++) {
                    byte[] key = b("k" + random.nextInt(500));
                    switch (random.nextInt(10)) {
                        case 0 -> from.delete(key);
                        case 1 -> from.deleteRange(KeyRange.between(key, b(s(key) + "5")));
                        case 2 -> from.put(key, new byte[5000]);
                        default -> from.put(key, b("v" + i));
                    }
                }
                if (random.nextBoolean()) {
                    source.flush();
                }
                // Each round goes on where the last one has acknowledged.
                try (Changes changes = consumer.changes()) {
                    long last = consumer.acknowledged();
                    for (Optional<Change> change; (change = changes.poll(Duration.ZERO)).isPresent(); ) {
                        last = change.get().sequence();
                        if (change.get() instanceof Change.BatchWritten batch) {
                            target.write(copied(batch, to));
                        }
                    }
                    consumer.acknowledge(last);
                    assertEquals(source.snapshot().sequence(), consumer.acknowledged());
                }
                assertEquals(taken(from.entries(KeyRange.all())), taken(to.entries(KeyRange.all())));
            }
        }
    }

    private static Batch copied(Change.BatchWritten batch, Keyspace to) {
        Batch copy = new Batch();
        for (Write write : batch.writes()) {
            if (write instanceof Write.Put put) {
                copy.put(to, put.key(), put.value());
            } else if (write instanceof Write.Delete delete) {
                copy.delete(to, delete.key());
            } else {
                copy.deleteRange(to, ((Write.DeleteRange) write).range());
            }
        }
        return copy;
    }

    @Test
    void consumersKeepTheirPlaceAndAreRemoved() {
        try (Database database = Database.open(folder, new Options())) {
            ChangeConsumer consumer = database.consumer("index");
            database.keyspace("a").put(b("k"), b("v"));
            consumer.acknowledge(1);
        }
        try (Database database = Database.open(folder, new Options())) {
            ChangeConsumer consumer = database.consumer("index");
            assertEquals("index", consumer.name());
            assertEquals(1, consumer.acknowledged());
            try (Changes changes = consumer.changes()) {
                assertEquals(List.of("a:k=v"), there(changes));
            }
            fails(ErrorCode.INVALID_ARGUMENT, () -> consumer.acknowledge(1000));
            fails(ErrorCode.INVALID_ARGUMENT, () -> consumer.acknowledge(-1));
            fails(ErrorCode.INVALID_ARGUMENT, () -> database.consumer(""));
            ChangeConsumer.State state = database.consumers().get(0);
            assertEquals("index 1 false", state.name() + " " + state.acknowledged() + " " + state.isBehind());
            database.removeConsumer("index");
            assertEquals(List.of(), database.consumers());
            fails(ErrorCode.NOT_FOUND, consumer::acknowledged);
            fails(ErrorCode.NOT_FOUND, () -> consumer.acknowledge(1));
            fails(ErrorCode.NOT_FOUND, consumer::changes);
            fails(ErrorCode.NOT_FOUND, () -> database.removeConsumer("index"));
            consumer.close();
            fails(ErrorCode.CLOSED, consumer::acknowledged);
        }
    }

    @Test
    void whoFallsBehindHasACode() {
        Options options = new Options()
                .changeRetentionBytes(300 << 10)
                .changeRetentionIdle(Duration.ofDays(1))
                .keyspace(new KeyspaceOptions().memtableBytes(64 << 10));
        try (Database database = Database.open(folder, options)) {
            ChangeConsumer consumer = database.consumer("slow");
            Keyspace a = database.keyspace("a");
            for (int i = 0; !database.consumers().get(0).isBehind(); i++) {
                a.put(b("k" + i), new byte[50]);
            }
            fails(ErrorCode.FELL_BEHIND, consumer::changes);
            fails(ErrorCode.FELL_BEHIND, () -> consumer.acknowledge(1));
            fails(ErrorCode.FELL_BEHIND, () -> database.changes(1));
            // Begin again.
            database.removeConsumer("slow");
            ChangeConsumer again = database.consumer("slow");
            try (Changes changes = again.changes()) {
                a.put(b("k"), b("new"));
                assertEquals(List.of("a:k=new"), there(changes));
            }
        }
    }

    @Test
    void aWaitEndsWithACommitACloseOrAnInterrupt() throws InterruptedException {
        Database database = Database.open(folder, new Options());
        Keyspace a = database.keyspace("a");
        Changes changes = database.consumer("test").changes();
        AtomicReference<Object> outcome = new AtomicReference<>();
        Runnable wait = () -> {
            try {
                outcome.set(changes.poll(Duration.ofDays(1_000_000)).map(ChangesTest::text));
            } catch (WindrowException error) {
                outcome.set(error.code());
            }
        };
        Thread first = new Thread(wait);
        first.start();
        a.put(b("k"), b("v"));
        first.join();
        assertEquals(Optional.of("a:k=v"), outcome.get());

        AtomicReference<Boolean> interrupted = new AtomicReference<>();
        Thread second = new Thread(() -> {
            wait.run();
            interrupted.set(Thread.currentThread().isInterrupted());
        });
        second.start();
        second.interrupt();
        second.join();
        assertEquals(Optional.empty(), outcome.get());
        assertTrue(interrupted.get());

        Thread third = new Thread(wait);
        third.start();
        while (third.getState() != Thread.State.RUNNABLE) {
            Thread.onSpinWait();
        }
        database.close();
        third.join();
        assertEquals(ErrorCode.CLOSED, outcome.get());
        fails(ErrorCode.CLOSED, changes::hasNext);
        fails(ErrorCode.CLOSED, changes::position);
        changes.close();
    }
}
