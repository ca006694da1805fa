package io.windrow.kafka.streams;

import static io.windrow.kafka.streams.Contexts.key;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.stream.Stream;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.DslStoreFormat;
import org.apache.kafka.streams.errors.InvalidStateStoreException;
import org.apache.kafka.streams.errors.ProcessorStateException;
import org.apache.kafka.streams.query.Position;
import org.apache.kafka.streams.state.KeyValueIterator;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.WindowStore;
import org.apache.kafka.test.InternalMockProcessorContext;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** A commit is what survives. Every close here is one without a commit before it, unless the test commits. */
class CommitTest {
    private static final TopicPartition CHANGELOG = new TopicPartition("changelog", 3);
    private static final TopicPartition OTHER = new TopicPartition("other", 0);
    private static final long OFFSET_UNKNOWN = -4;
    private static final Duration PATIENCE = Duration.ofMinutes(1);

    @TempDir
    Path folder;

    private InternalMockProcessorContext<Object, Object> context;
    private KeyValueStore<Bytes, byte[]> store;

    private void open() {
        open(Map.of());
    }

    private void open(Map<String, String> settings) {
        store = WindrowStores.keyValueStore("counts").get();
        context = Contexts.in(folder.toFile(), settings);
        store.init(context, store);
    }

    private void reopen() {
        store.close();
        open();
    }

    @AfterEach
    void close() {
        store.close();
        store.close();
    }

    private void put(String name, String value) {
        store.put(key(name), value == null ? null : value.getBytes());
    }

    private String get(String name) {
        byte[] value = store.get(key(name));
        return value == null ? null : new String(value);
    }

    private String contents() {
        StringBuilder contents = new StringBuilder();
        try (KeyValueIterator<Bytes, byte[]> all = store.all()) {
            all.forEachRemaining(it -> contents.append(new String(it.key.get())).append('=').append(new String(it.value)).append(' '));
        }
        return contents.toString().strip();
    }

    @Test
    void whatWasNotCommittedIsGone() {
        open();
        put("a", "1");
        assertEquals("1", get("a"));
        reopen();
        assertEquals("", contents());
        put("a", "1");
        put("b", "1");
        store.commit(Map.of(CHANGELOG, 7L));
        put("a", "2");
        put("b", null);
        put("c", "3");
        assertEquals("a=2 c=3", contents());
        assertEquals(7, store.committedOffset(CHANGELOG));
        reopen();
        assertEquals("a=1 b=1", contents());
        assertEquals(7, store.committedOffset(CHANGELOG));
        // Also after another open that wrote nothing, and after one that committed the same.
        store.commit(Map.of(CHANGELOG, 7L));
        reopen();
        reopen();
        put("a", "5");
        store.commit(Map.of(CHANGELOG, 8L));
        reopen();
        assertEquals("a=5 b=1", contents());
        assertEquals(8, store.committedOffset(CHANGELOG));
    }

    @Test
    void manyCommitsLeaveTheLastOne() {
        open();
        for (int i = 0; i < 20; i++) {
            for (int j = 0; j < 50; j++) {
                put("key " + j, "value " + i);
            }
            if (i % 3 == 0) {
                store.commit(Map.of(CHANGELOG, (long) i));
            }
        }
        reopen();
        assertEquals("value 18", get("key 49"));
        assertEquals(18, store.committedOffset(CHANGELOG));
    }

    /** More than fit into memtables: most are in files when they are forgotten. */
    @Test
    void manyWritesBetweenCommitsAreGone() {
        open();
        for (int i = 0; i < 15_000; i++) {
            put("key " + i, "old");
        }
        store.commit(Map.of(CHANGELOG, 1L));
        for (int i = 0; i < 25_000; i++) {
            put("key " + i, i % 3 == 0 ? null : "new");
        }
        assertEquals("new", get("key 10000"));
        reopen();
        for (int i = 0; i < 25_000; i++) {
            assertEquals(i < 15_000 ? "old" : null, get("key " + i));
        }
        put("key 0", "new");
        store.commit(Map.of(CHANGELOG, 2L));
        reopen();
        assertEquals("new", get("key 0"));
        assertEquals("old", get("key 14999"));
    }

    @Test
    void offsetsAreAddedReplacedAndRemoved() {
        open();
        put("a", "1");
        store.commit(Map.of(CHANGELOG, 1L));
        store.commit(Map.of(OTHER, OFFSET_UNKNOWN));
        reopen();
        assertEquals(1, store.committedOffset(CHANGELOG));
        assertEquals(OFFSET_UNKNOWN, store.committedOffset(OTHER));
        Map<TopicPartition, Long> removed = new HashMap<>();
        removed.put(CHANGELOG, null);
        store.commit(removed);
        reopen();
        assertNull(store.committedOffset(CHANGELOG));
        assertEquals(OFFSET_UNKNOWN, store.committedOffset(OTHER));
        store.commit(Map.of());
        reopen();
        assertNull(store.committedOffset(OTHER));
    }

    /** Kafka wipes a task with files whose store has no offset. A mere kill must not have that effect, nor a new store. */
    @Test
    void aStoreThatNeverCommittedHasAnUnknownOffset() {
        open();
        assertEquals(OFFSET_UNKNOWN, store.committedOffset(CHANGELOG));
        put("a", "1");
        reopen();
        assertEquals(OFFSET_UNKNOWN, store.committedOffset(CHANGELOG));
        assertEquals("", contents());
    }

    @Test
    void aRestoredBatchIsCommittedWithItsOffset() {
        open();
        context.restoreWithHeaders("counts", List.of(record(10, "a", "1"), record(11, "b", "1"), record(12, "a", null)));
        assertEquals(12, store.committedOffset(CHANGELOG));
        reopen();
        assertEquals("b=1", contents());
        assertEquals(12, store.committedOffset(CHANGELOG));
        // What is processed afterwards is not committed, and neither is what is restored after it.
        put("a", "2");
        context.restoreWithHeaders("counts", List.of(record(13, "c", "3")));
        assertEquals("a=2 b=1 c=3", contents());
        reopen();
        assertEquals("b=1", contents());
        assertEquals(12, store.committedOffset(CHANGELOG));
    }

    @Test
    void whatIsProcessedLeavesWhatWasRestoredBeforeIt() {
        open();
        context.restoreWithHeaders("counts", List.of(record(10, "a", "1"), record(11, "b", "1")));
        put("a", "2");
        reopen();
        assertEquals("a=1 b=1", contents());
        assertEquals(11, store.committedOffset(CHANGELOG));
    }

    /** Kafka commits restoring tasks very often. */
    @Test
    void aCommitWhileRestoringIsPersistedWhenItIsDue() throws IOException {
        open(Map.of(Settings.PERSIST_INTERVAL, Contexts.A_YEAR, Settings.MEMTABLE_BYTES, "65536"));
        context.restoreWithHeaders("counts", List.of(record(10, "a", "1")));
        store.commit(Map.of(CHANGELOG, 10L));
        assertEquals(10, store.committedOffset(CHANGELOG));
        assertEquals(OFFSET_UNKNOWN, offsetAfterAKill());
        context.restoreWithHeaders("counts", List.of(record(11, "b", "1".repeat(15 * 65536))));
        store.commit(Map.of(CHANGELOG, 11L));
        assertEquals(OFFSET_UNKNOWN, offsetAfterAKill());
        context.restoreWithHeaders("counts", List.of(record(12, "c", "1".repeat(65536))));
        store.commit(Map.of(CHANGELOG, 12L));
        awaitOffsetAfterAKill(12);
        context.restoreWithHeaders("counts", List.of(record(13, "c", "1")));
        store.commit(Map.of(CHANGELOG, 13L));
        assertEquals(12, offsetAfterAKill());
        // Kafka says that nothing of it can be used.
        store.commit(Map.of());
        assertNull(offsetAfterAKill());
    }

    @Test
    void aCommitOfWhatWasProcessedIsPersistedAtOnce() throws IOException {
        open(Map.of(Settings.PERSIST_INTERVAL, Contexts.A_YEAR));
        put("a", "1");
        store.commit(Map.of(CHANGELOG, 10L));
        assertEquals(10, offsetAfterAKill());
        put("a", "2");
        store.commit(Map.of(CHANGELOG, 11L));
        put("a", "3");
        assertEquals(11, offsetAfterAKill());
    }

    /** A commit of Kafka is persisted at its return, also if a persist of the same was only begun. */
    @Test
    void aCommitWaitsForAPersistThatHasIt() throws IOException {
        store = WindrowStores.keyValueStore("none").get();
        Settings settings = Settings.of(Map.of(Settings.PERSIST_INTERVAL, Contexts.A_YEAR, Settings.MEMTABLE_BYTES, "65536"));
        StoreKind kind = new StoreKind("counts", "key-value " + DslStoreFormat.PLAIN, 0, true, false, true);
        Random random = new Random(1);
        try (StoreDatabase database = new StoreDatabase(folder.resolve("windrow").resolve("counts"), settings, kind)) {
            for (long offset = 1; offset <= 20; offset++) {
                byte[] value = new byte[100_000];
                random.nextBytes(value);
                database.put(new byte[] {(byte) offset}, value);
                database.commitSeen(Map.of(CHANGELOG, offset), Position.emptyPosition(), -1, 0);
                database.commit(Map.of(CHANGELOG, offset), Position.emptyPosition(), -1, 0);
                assertEquals(offset, offsetAfterAKill());
            }
        }
    }

    /** A persist that was due goes on in the background. */
    private void awaitOffsetAfterAKill(long expected) throws IOException {
        long began = System.nanoTime();
        while (true) {
            try {
                if (Long.valueOf(expected).equals(offsetAfterAKill())) {
                    return;
                }
            } catch (NoSuchFileException error) {
                // It went between the list and the copy.
            }
            assertTrue(System.nanoTime() - began < PATIENCE.toNanos(), "offset " + expected + " is not persisted");
        }
    }

    /** What another process finds in a copy of the files as they are now. */
    private Long offsetAfterAKill() throws IOException {
        Path files = Path.of("windrow", "counts");
        Path copies = Files.createTempDirectory(folder, "copies");
        Files.createDirectories(copies.resolve(files));
        try (Stream<Path> found = Files.list(folder.resolve(files))) {
            for (Path file : found.toList()) {
                Files.copy(file, copies.resolve(files).resolve(file.getFileName()));
            }
        }
        KeyValueStore<Bytes, byte[]> copy = WindrowStores.keyValueStore("counts").get();
        copy.init(Contexts.in(copies.toFile()), copy);
        try {
            return copy.committedOffset(CHANGELOG);
        } finally {
            copy.close();
        }
    }

    private static ConsumerRecord<byte[], byte[]> record(long offset, String name, String value) {
        byte[] bytes = value == null ? null : value.getBytes();
        return new ConsumerRecord<>(CHANGELOG.topic(), CHANGELOG.partition(), offset, name.getBytes(), bytes);
    }

    @Test
    void thePositionIsThatOfTheCommit() {
        open();
        Contexts.process(context, 5);
        put("a", "1");
        store.commit(Map.of(CHANGELOG, 1L));
        Contexts.process(context, 9);
        put("a", "2");
        assertEquals(9, store.getPosition().getPartitionPositions("input").get(0));
        reopen();
        assertEquals(5, store.getPosition().getPartitionPositions("input").get(0));
    }

    /** Kafka opens the same object again. */
    @Test
    void thePositionOfAStoreThatIsOpenedAgainIsThatOfTheCommit() {
        open();
        Contexts.process(context, 5);
        put("a", "1");
        store.commit(Map.of(CHANGELOG, 1L));
        Contexts.process(context, 9);
        put("a", "2");
        store.close();
        store.init(context, store);
        assertEquals("1", get("a"));
        assertEquals(5, store.getPosition().getPartitionPositions("input").get(0));
    }

    @Test
    void anotherFormatStartsFromNothing() {
        open();
        put("a", "1");
        store.commit(Map.of(CHANGELOG, 7L));
        store.close();
        store = WindrowKeyValueStore.of("counts", DslStoreFormat.TIMESTAMPED);
        store.init(Contexts.in(folder.toFile()), store);
        assertNull(store.get(key("a")));
        assertEquals(OFFSET_UNKNOWN, store.committedOffset(CHANGELOG));
    }

    @Test
    void theEmptyKeyAndZerosKeepTheirOrder() {
        open();
        List<String> keys = List.of("", "\u0000", "\u0000\u0000", "\u0000\u0001", "\u0001", "a");
        keys.forEach(it -> put(it, "v"));
        List<String> found = new java.util.ArrayList<>();
        store.all().forEachRemaining(it -> found.add(new String(it.key.get())));
        assertEquals(keys, found);
        found.clear();
        store.range(key(""), key("\u0000\u0000")).forEachRemaining(it -> found.add(new String(it.key.get())));
        assertEquals(keys.subList(0, 3), found);
        assertEquals("v", get(""));
        put("", null);
        assertNull(get(""));
    }

    @Test
    void aClosedStoreSaysSo() {
        open();
        put("a", "1");
        KeyValueIterator<Bytes, byte[]> all = store.all();
        store.close();
        assertThrows(InvalidStateStoreException.class, () -> get("a"));
        assertThrows(InvalidStateStoreException.class, () -> put("a", "2"));
        assertThrows(InvalidStateStoreException.class, () -> store.all());
        assertThrows(InvalidStateStoreException.class, () -> store.committedOffset(CHANGELOG));
        all.close();
        store.commit(Map.of());
    }

    @Test
    void aKeyThatIsTooLongIsAnError() {
        open();
        assertThrows(ProcessorStateException.class, () -> store.put(Bytes.wrap(new byte[70_000]), new byte[0]));
        byte[] value = new byte[5 << 20];
        store.put(key("large"), value);
        assertArrayEquals(value, store.get(key("large")));
    }

    @Test
    void windowsKeepTheTimeOfTheirStream() {
        open();
        WindowStore<Bytes, byte[]> windows = windows();
        windows.put(key("a"), new byte[] {1}, 0);
        windows.commit(Map.of(CHANGELOG, 1L));
        // The first window expires, and is removed, but that was not committed.
        windows.put(key("a"), new byte[] {2}, 1_000_000);
        assertNull(windows.fetch(key("a"), 0));
        windows.close();
        windows = windows();
        assertArrayEquals(new byte[] {1}, windows.fetch(key("a"), 0));
        windows.put(key("a"), new byte[] {2}, 1_000_000);
        windows.commit(Map.of(CHANGELOG, 2L));
        windows.close();
        windows = windows();
        assertNull(windows.fetch(key("a"), 0));
        windows.put(key("a"), new byte[] {3}, 0);
        assertNull(windows.fetch(key("a"), 0), "a late write is dropped after a restart, too");
        windows.close();
    }

    /** A record that came too late is in the changelog, too: a clean restart must not restore it. */
    @Test
    void theOffsetOfADroppedWriteCounts() {
        open();
        WindowStore<Bytes, byte[]> windows = windows();
        windows.put(key("a"), new byte[] {2}, 1_000_000);
        windows.commit(Map.of(CHANGELOG, 1L));
        windows.close();
        windows = windows();
        windows.put(key("a"), new byte[] {3}, 0);
        windows.commit(Map.of(CHANGELOG, 2L));
        windows.close();
        windows = windows();
        assertEquals(2, windows.committedOffset(CHANGELOG));
        windows.close();
    }

    @Test
    void anotherRetentionKeepsTheWindows() {
        open();
        WindowStore<Bytes, byte[]> windows = windows();
        windows.put(key("a"), new byte[] {1}, 0);
        windows.commit(Map.of(CHANGELOG, 1L));
        windows.close();
        windows = windows(Duration.ofHours(4));
        windows.put(key("a"), new byte[] {2}, 3_600_000);
        assertArrayEquals(new byte[] {1}, windows.fetch(key("a"), 0));
        assertEquals(1, windows.committedOffset(CHANGELOG));
        windows.close();
    }

    private WindowStore<Bytes, byte[]> windows() {
        return windows(Duration.ofMinutes(2));
    }

    private WindowStore<Bytes, byte[]> windows(Duration retention) {
        WindowStore<Bytes, byte[]> windows =
                WindrowStores.windowStore("windows", retention, Duration.ofMinutes(1), false).get();
        windows.init(Contexts.in(folder.toFile()), windows);
        return windows;
    }
}
