package io.windrow;

import static io.windrow.Tests.b;
import static io.windrow.Tests.fails;
import static io.windrow.Tests.s;
import static io.windrow.Tests.taken;
import static java.nio.charset.StandardCharsets.ISO_8859_1;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.google.gson.JsonParser;
import java.io.File;
import java.lang.ref.WeakReference;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Function;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Objects of the caller that the engine calls: merge operators, compaction filters and listeners. */
class FunctionsTest {
    @TempDir
    Path folder;

    /** Appends operands, and notes the threads that call it. */
    private static final class Joining implements MergeOperator {
        final Map<Thread, Boolean> threads = new ConcurrentHashMap<>();

        @Override
        public String name() {
            return "test.joining";
        }

        @Override
        public byte[] merge(byte[] key, byte[] base, List<byte[]> operands) {
            threads.put(Thread.currentThread(), Thread.currentThread().isDaemon());
            StringBuilder joined = new StringBuilder(base == null ? s(key) + ":" : s(base));
            operands.forEach(operand -> joined.append(s(operand)));
            return b(joined.toString());
        }

        @Override
        public byte[] partialMerge(byte[] key, List<byte[]> operands) {
            assertTrue(operands.size() >= 2);
            StringBuilder joined = new StringBuilder();
            operands.forEach(operand -> joined.append(s(operand)));
            return b(joined.toString());
        }
    }

    /** An operator of this name that does this. */
    private static MergeOperator operator(String name, Function<List<byte[]>, byte[]> merge) {
        return new MergeOperator() {
            @Override
            public String name() {
                return name;
            }

            @Override
            public byte[] merge(byte[] key, byte[] base, List<byte[]> operands) {
                return merge.apply(operands);
            }
        };
    }

    private static CompactionFilter filter(Function<Candidate, Decision> decide) {
        return new CompactionFilter() {
            @Override
            public String name() {
                return "test.filter";
            }

            @Override
            public Decision decide(Candidate candidate) {
                return decide.apply(candidate);
            }
        };
    }

    @Test
    void anOperatorOfJavaFoldsInReadsFlushesAndCompactions() {
        Joining joining = new Joining();
        Options options = new Options()
                .mergeOperator("words", joining)
                .keyspace(new KeyspaceOptions().memtableBytes(64 << 10).level0Runs(2));
        TreeMap<String, StringBuilder> model = new TreeMap<>();
        try (Database database = Database.open(folder, options)) {
            Keyspace words = database.keyspace("words");
            for (int i = 0; i < 20_000; i++) {
                String key = "k" + i % 100;
                String operand = i % 7 + ",";
                words.merge(b(key), b(operand));
                StringBuilder value = model.computeIfAbsent(key, first -> new StringBuilder(key + ":"));
                value.append(operand);
                if (i % 5000 == 0) {
                    database.flush();
                }
            }
            words.compact(KeyRange.all());
            for (Map.Entry<String, StringBuilder> entry : model.entrySet()) {
                assertEquals(entry.getValue().toString(), s(words.get(b(entry.getKey()))));
            }
            try (Transaction transaction = database.begin(Isolation.SERIALIZABLE)) {
                transaction.merge(words, b("k1"), b("!"));
                assertEquals(model.get("k1") + "!", s(transaction.get(words, b("k1"))));
            }
            // Threads of the engine have called it, and no one of them keeps the virtual machine from its end.
            joining.threads.remove(Thread.currentThread());
            assertTrue(!joining.threads.isEmpty());
            joining.threads.forEach((thread, isDaemon) -> assertTrue(isDaemon, thread.getName()));
        }
        try (Database database = Database.open(folder, new Options())) {
            fails(ErrorCode.INVALID_ARGUMENT, () -> database.keyspace("words").merge(b("k1"), b("!")));
        }
    }

    @Test
    void whatAnOperatorThrowsIsTheErrorOfTheRead() {
        AtomicReference<Function<List<byte[]>, byte[]>> merge = new AtomicReference<>(operands -> operands.get(0));
        Options options = new Options().mergeOperator("words", operator("test.failing", operands -> merge.get().apply(operands)));
        try (Database database = Database.open(folder, options)) {
            Keyspace words = database.keyspace("words");
            words.merge(b("k"), b("v"));
            words.merge(b("k"), b("w"));
            Map<Function<List<byte[]>, byte[]>, String> failures = Map.of(
                    operands -> {
                        throw new IllegalStateException("no such word");
                    }, "no such word",
                    operands -> null, "has returned null",
                    operands -> recursion(1), "StackOverflowError",
                    operands -> {
                        throw new Error() {
                            @Override
                            public String toString() {
                                throw new IllegalArgumentException();
                            }
                        };
                    }, "FunctionsTest",
                    operands -> {
                        operands.add(b("more"));
                        return null;
                    }, "UnsupportedOperationException");
            failures.forEach((failing, text) -> {
                merge.set(failing);
                for (int i = 0; i < 3; i++) {
                    WindrowException error = fails(ErrorCode.MERGE, () -> words.get(b("k")));
                    assertTrue(error.getMessage().contains(text), error.getMessage());
                    fails(ErrorCode.MERGE, () -> taken(words.entries(KeyRange.all())));
                }
                // Background work meets it, too, and nothing is lost.
                database.flush();
            });
            merge.set(operands -> operands.get(1));
            assertEquals("w", s(words.get(b("k"))));
        }
    }

    private static byte[] recursion(int depth) {
        return depth == 0 ? null : recursion(depth + 1);
    }

    @Test
    void aLongHistoryOfCallsLeavesNoReferences() {
        // A thread of the engine stays in one native frame: each reference that a call left there would stay, too.
        Options options = new Options().mergeOperator("words", operator("test.last", operands -> operands.get(operands.size() - 1)));
        byte[] large = new byte[32 << 10];
        try (Database database = Database.open(folder, options)) {
            Keyspace words = database.keyspace("words");
            for (int i = 0; i < 10_000; i++) {
                words.merge(b("k" + i % 2000), large);
            }
            words.compact(KeyRange.all());
            // 1.2 GB of arrays, in a heap of 256 MB.
            for (int round = 0; round < 20; round++) {
                try (Entries entries = words.entries(KeyRange.all())) {
                    while (entries.hasNext()) {
                        assertEquals(large.length, entries.next().value().length);
                    }
                }
            }
        }
    }

    @Test
    void aFilterOfJavaDecides() {
        ConcurrentLinkedQueue<Candidate> kept = new ConcurrentLinkedQueue<>();
        Options options = new Options().compactionFilter("planets", filter(candidate -> {
            kept.add(candidate);
            assertEquals(candidate.valueBytes(), candidate.value().length);
            switch (s(candidate.key()).charAt(0)) {
                case 'r':
                    return Decision.remove();
                case 'c':
                    return Decision.replace(b(s(candidate.value()).toUpperCase(java.util.Locale.ROOT)));
                case 'x':
                    throw new IllegalStateException("undecided");
                case 'n':
                    return null;
                case 't':
                    return s(candidate.key()).equals("t" + candidate.expiresAt().equals(Instant.MAX))
                            ? Decision.keep()
                            : Decision.remove();
                default:
                    return Decision.keep();
            }
        }));
        try (Database database = Database.open(folder, options)) {
            Keyspace planets = database.keyspace("planets");
            for (String key : List.of("a", "r", "c", "x", "n", "ttrue")) {
                planets.put(b(key), b("value of " + key));
            }
            planets.put(b("large"), new byte[100_000]);
            planets.put(b("tfalse"), b("expires"), Duration.ofHours(1));
            planets.compact(KeyRange.all());
            database.waitIdle();
            planets.compact(KeyRange.all());
            assertEquals(
                    List.of("a", "c", "large", "n", "tfalse", "ttrue", "x"),
                    taken(planets.entries(KeyRange.all())).stream().map(entry -> entry.split("=")[0]).toList());
            assertEquals("VALUE OF C", s(planets.get(b("c"))));
            assertTrue(JsonParser.parseString(database.statistics()).toString().contains("judged_failed"));
        }
        // What a filter has kept is of no use after the call, in no thread.
        for (Candidate candidate : kept) {
            assertThrows(IllegalStateException.class, candidate::value);
            assertTrue(candidate.key().length > 0);
        }
    }

    @Test
    void aListenerGetsEventsAndMayCallTheDatabase() throws InterruptedException {
        LinkedBlockingQueue<Event> events = new LinkedBlockingQueue<>();
        AtomicReference<Keyspace> found = new AtomicReference<>();
        LinkedBlockingQueue<Throwable> uncaught = new LinkedBlockingQueue<>();
        Options options = new Options().listener(event -> {
            Thread.currentThread().setUncaughtExceptionHandler((thread, thrown) -> uncaught.add(thrown));
            if (!event.name().equals("flush_ended")) {
                return;
            }
            if (found.get() != null) {
                found.get().put(b("last event"), b(event.name()));
                found.get().database().flush();
            }
            events.add(event);
            throw new IllegalStateException("of the listener");
        });
        try (Database database = Database.open(folder, options)) {
            Keyspace planets = database.keyspace("planets");
            planets.put(b("mars"), b("two"));
            database.flush();
            Event event = events.poll(1, TimeUnit.MINUTES);
            assertEquals("flush_ended", event.name());
            assertEquals("planets", JsonParser.parseString(event.json()).getAsJsonObject().get("keyspace").getAsString());
            assertEquals("of the listener", uncaught.poll(1, TimeUnit.MINUTES).getMessage());
            found.set(planets);
            planets.put(b("mars"), b("2"));
            database.flush();
            events.poll(1, TimeUnit.MINUTES);
            assertEquals("flush_ended", s(planets.get(b("last event"))));
            found.set(null);
        }
    }

    @Test
    void theThreadOfAListenerEndsWithItsDatabase() throws InterruptedException {
        AtomicReference<Thread> thread = new AtomicReference<>();
        CountDownLatch called = new CountDownLatch(1);
        Options options = new Options().listener(event -> {
            thread.set(Thread.currentThread());
            called.countDown();
        });
        try (Database database = Database.open(folder, options)) {
            database.keyspace("planets").put(b("mars"), b("two"));
            database.flush();
            assertTrue(called.await(1, TimeUnit.MINUTES));
            fails(ErrorCode.LOCKED, () -> Database.open(folder, options));
        }
        thread.get().join(60_000);
        assertEquals(Thread.State.TERMINATED, thread.get().getState());
        fails(ErrorCode.INVALID_ARGUMENT, () -> Database.open(folder, options.keyspace(new KeyspaceOptions().preset("?"))));
        fails(ErrorCode.INVALID_ARGUMENT, () -> Database.open(folder.resolve("new"), new Options().listener(event -> {}).cacheBytes(-1)));
        long listening = 0;
        for (int tries = 0; tries < 600; tries++) {
            listening = Thread.getAllStackTraces().keySet().stream().filter(one -> one.getName().equals("windrow-events")).count();
            if (listening == 0) {
                break;
            }
            Thread.sleep(100);
        }
        assertEquals(0, listening);
    }

    @Test
    void objectsAreFreedWithTheirDatabase() throws InterruptedException {
        WeakReference<MergeOperator> operator = openedAndClosed();
        for (int tries = 0; tries < 600 && operator.get() != null; tries++) {
            System.gc();
            Thread.sleep(10);
        }
        assertNull(operator.get());
    }

    private WeakReference<MergeOperator> openedAndClosed() {
        Joining joining = new Joining();
        Options options = new Options().mergeOperator("words", joining).compactionFilter("words", filter(one -> Decision.keep()));
        try (Database database = Database.open(folder, options)) {
            Keyspace words = database.keyspace("words");
            words.merge(b("k"), b("v"));
            database.flush();
            words.merge(b("k"), b("v"));
            words.compact(KeyRange.all());
            assertEquals("k:vv", s(words.get(b("k"))));
        }
        fails(ErrorCode.INVALID_ARGUMENT, () -> Database.open(folder.resolve("other"), new Options()
                .mergeOperator("words", joining)
                .mergeOperator("others", "there is none")));
        return new WeakReference<>(joining);
    }

    /** A program that closes nothing: the threads of the engine know the virtual machine then. */
    static final class Leaving {
        public static void main(String[] arguments) throws InterruptedException {
            CountDownLatch called = new CountDownLatch(1);
            Options options = new Options()
                    .mergeOperator("words", new Joining())
                    .compactionFilter("words", filter(candidate -> {
                        called.countDown();
                        return Decision.keep();
                    }))
                    .listener(event -> {})
                    .keyspace(new KeyspaceOptions().level0Runs(2));
            Database database = Database.open(Path.of(arguments[0]), options);
            Keyspace words = database.keyspace("words");
            while (called.getCount() > 0) {
                for (int i = 0; i < 100; i++) {
                    words.put(b("k" + i), b("v"));
                    words.merge(b("k" + i), b("v"));
                }
                database.flush();
                called.await(10, TimeUnit.MILLISECONDS);
            }
            System.out.print("left");
        }
    }

    @Test
    void theVirtualMachineEndsBesideAnOpenDatabase() throws Exception {
        String classes = Path.of(Database.class.getProtectionDomain().getCodeSource().getLocation().toURI())
                + File.pathSeparator
                + Path.of(FunctionsTest.class.getProtectionDomain().getCodeSource().getLocation().toURI());
        Process process = new ProcessBuilder(
                        Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                        "-Xcheck:jni",
                        "-Djava.io.tmpdir=" + System.getProperty("java.io.tmpdir"),
                        "-cp",
                        classes,
                        Leaving.class.getName(),
                        folder.toString())
                .redirectErrorStream(true)
                .start();
        String output = new String(process.getInputStream().readAllBytes(), ISO_8859_1);
        assertEquals(0, process.waitFor(), output);
        assertEquals("left", output);
    }

    @Test
    void objectsWithoutANameAreErrors() {
        assertThrows(NullPointerException.class, () -> new Options().mergeOperator("k", operator(null, operands -> null)));
        assertThrows(NullPointerException.class, () -> new Options().mergeOperator("k", (MergeOperator) null));
        assertThrows(NullPointerException.class, () -> new Options().compactionFilter(null, filter(one -> null)));
        assertThrows(NullPointerException.class, () -> new Options().listener(null));
    }
}
