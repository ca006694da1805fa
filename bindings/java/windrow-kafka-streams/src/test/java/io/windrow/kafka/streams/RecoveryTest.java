package io.windrow.kafka.streams;

import static io.windrow.kafka.streams.Contexts.key;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.mockito.Mockito.mock;
import static org.mockito.Mockito.when;

import io.windrow.Database;
import io.windrow.Keyspace;
import io.windrow.Options;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.Stream;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.common.utils.Utils;
import org.apache.kafka.streams.DslStoreFormat;
import org.apache.kafka.streams.errors.ProcessorStateException;
import org.apache.kafka.streams.processor.TaskId;
import org.apache.kafka.streams.processor.internals.StateDirectory;
import org.apache.kafka.streams.state.KeyValueIterator;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.internals.LegacyCheckpointingStateStore;
import org.apache.kafka.streams.state.internals.OffsetCheckpoint;
import org.apache.kafka.test.InternalMockProcessorContext;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** What a store tells Kafka when it is new, damaged, or was not what Kafka believes. */
class RecoveryTest {
    private static final TopicPartition CHANGELOG = new TopicPartition("changelog", 0);
    private static final long OFFSET_UNKNOWN = -4;

    @TempDir
    Path folder;

    private InternalMockProcessorContext<Object, Object> context;
    private KeyValueStore<Bytes, byte[]> store;

    private void open() {
        open(Contexts.in(folder.toFile()), DslStoreFormat.PLAIN);
    }

    private void open(InternalMockProcessorContext<Object, Object> context, DslStoreFormat format) {
        if (store != null) {
            store.close();
        }
        this.context = context;
        store = WindrowKeyValueStore.of("counts", format);
        store.init(context, store);
    }

    @AfterEach
    void close() {
        store.close();
    }

    private void put(int from, int to, String value) {
        for (int i = from; i < to; i++) {
            store.put(key("key " + i), value.getBytes());
        }
    }

    private long count() {
        long count = 0;
        try (KeyValueIterator<Bytes, byte[]> all = store.all()) {
            for (; all.hasNext(); all.next()) {
                count++;
            }
        }
        return count;
    }

    private Path files() {
        return folder.resolve("windrow").resolve("counts");
    }

    private static ConsumerRecord<byte[], byte[]> record(long offset) {
        byte[] bytes = ("key " + offset).getBytes();
        return new ConsumerRecord<>(CHANGELOG.topic(), CHANGELOG.partition(), offset, bytes, bytes);
    }

    /** A file of Kafka up to 4.2 has the offsets of all stores of a task. These were stores on RocksDB. */
    private void migrateOffset(long offset) throws IOException {
        Path checkpoint = folder.resolve(".checkpoint");
        new OffsetCheckpoint(checkpoint.toFile()).write(Map.of(CHANGELOG, offset));
        StateDirectory directory = mock(StateDirectory.class);
        when(directory.getOrCreateDirectoryForTask(new TaskId(0, 0))).thenReturn(folder.toFile());
        LegacyCheckpointingStateStore.migrateLegacyOffsets("", directory, new TaskId(0, 0), Map.of(CHANGELOG, store));
        assertFalse(Files.exists(checkpoint), "the offsets were migrated");
    }

    @Test
    void anEmptyStoreTakesNoOffsetFromElsewhere() throws IOException {
        open();
        migrateOffset(1_000_000);
        assertEquals(OFFSET_UNKNOWN, store.committedOffset(CHANGELOG));
        open();
        assertEquals(OFFSET_UNKNOWN, store.committedOffset(CHANGELOG));
        assertFalse(Files.exists(files()), "it has no files");
    }

    @Test
    void aStoreTakesNoLaterOffsetFromElsewhere() throws IOException {
        open();
        put(0, 1, "value");
        store.commit(Map.of(CHANGELOG, 5L));
        open();
        migrateOffset(1_000_000);
        assertEquals(5, store.committedOffset(CHANGELOG));
        put(1, 2, "value");
        store.commit(Map.of(CHANGELOG, 6L));
        open();
        assertEquals(6, store.committedOffset(CHANGELOG));
    }

    @Test
    void aGlobalStoreThatWasNeverCommittedHasNoOffset() {
        open(Contexts.global(folder.toFile()), DslStoreFormat.PLAIN);
        assertNull(store.committedOffset(CHANGELOG));
        put(0, 10, "value");
        open(Contexts.global(folder.toFile()), DslStoreFormat.PLAIN);
        assertNull(store.committedOffset(CHANGELOG));
        put(0, 10, "value");
        store.commit(Map.of(CHANGELOG, OFFSET_UNKNOWN));
        open(Contexts.global(folder.toFile()), DslStoreFormat.PLAIN);
        assertNull(store.committedOffset(CHANGELOG));
        open(Contexts.global(folder.toFile()), DslStoreFormat.TIMESTAMPED);
        assertNull(store.committedOffset(CHANGELOG));
    }

    /** Global stores restore after each poll, also when it had no records. */
    @Test
    void nothingThatIsRestoredLeavesNothing() {
        open(Contexts.global(folder.toFile()), DslStoreFormat.PLAIN);
        context.restoreWithHeaders("counts", List.of());
        assertFalse(Files.exists(files()));
        context.restoreWithHeaders("counts", List.of(record(3)));
        context.restoreWithHeaders("counts", List.of());
        context.restoreWithHeaders("counts", List.of(record(4)));
        open(Contexts.global(folder.toFile()), DslStoreFormat.PLAIN);
        assertEquals(4, store.committedOffset(CHANGELOG));
        assertEquals(2, count());
    }

    @Test
    void filesThatAreNotUnderstoodAreNotUsed() throws IOException {
        Files.createDirectories(files().resolve("live"));
        Files.writeString(files().resolve("live").resolve("CURRENT"), "of another layout");
        InternalMockProcessorContext<Object, Object> without = Contexts.withoutChangelog(folder.toFile());
        KeyValueStore<Bytes, byte[]> other = WindrowKeyValueStore.of("counts", DslStoreFormat.PLAIN);
        assertThrows(ProcessorStateException.class, () -> other.init(without, other));
        assertTrue(Files.exists(files().resolve("live")));
        open();
        assertEquals(OFFSET_UNKNOWN, store.committedOffset(CHANGELOG));
        assertFalse(Files.exists(files()));
        put(0, 1, "value");
        store.commit(Map.of(CHANGELOG, 1L));
        open();
        assertEquals(1, count());
        assertEquals(1, store.committedOffset(CHANGELOG));
    }

    /** A wipe of the task that did not come to its end. */
    @Test
    void eachRemovedFileIsNoticed() throws IOException {
        open();
        put(0, 100, "value");
        store.commit(Map.of(CHANGELOG, 5L));
        put(0, 100, "new");
        store.close();
        Map<Path, byte[]> files = new TreeMap<>();
        try (Stream<Path> found = Files.list(files())) {
            for (Path file : found.toList()) {
                files.put(file, Files.readAllBytes(file));
            }
        }
        int noticed = 0;
        for (Path removed : files.keySet()) {
            Files.createDirectories(files());
            for (Map.Entry<Path, byte[]> file : files.entrySet()) {
                Files.write(file.getKey(), file.getValue());
            }
            Files.delete(removed);
            open();
            // A file that holds nothing may be missing.
            if (count() == 100) {
                assertEquals("value", new String(store.get(key("key 99"))), removed.toString());
                assertEquals(5, store.committedOffset(CHANGELOG), removed.toString());
            } else {
                noticed++;
                assertEquals(0, count(), removed.toString());
                assertEquals(OFFSET_UNKNOWN, store.committedOffset(CHANGELOG), removed.toString());
            }
            store.close();
            Utils.delete(files().toFile());
        }
        // CURRENT, the manifest, and a table of the entries and of the state.
        assertTrue(noticed >= 4, noticed + " of " + files.keySet());
    }

    /** Without a changelog, what is there is all that there is. */
    @Test
    void aStoreWithoutAChangelogIsNotRemoved() {
        open(Contexts.withoutChangelog(folder.toFile()), DslStoreFormat.PLAIN);
        put(0, 3, "value");
        store.commit(Map.of());
        store.close();
        KeyValueStore<Bytes, byte[]> other = WindrowKeyValueStore.of("counts", DslStoreFormat.TIMESTAMPED);
        InternalMockProcessorContext<Object, Object> without = Contexts.withoutChangelog(folder.toFile());
        assertThrows(ProcessorStateException.class, () -> other.init(without, other));
        open(Contexts.withoutChangelog(folder.toFile()), DslStoreFormat.PLAIN);
        assertEquals(3, count());
    }

    /** The database of a store that cannot be opened is closed: another one can open it at once. */
    @Test
    void anOpenThatFailsLeavesNothingOpen() {
        open(Contexts.withoutChangelog(folder.toFile()), DslStoreFormat.PLAIN);
        put(0, 1, "value");
        store.commit(Map.of());
        store.close();
        byte[] right = setState(new byte[] {99});
        KeyValueStore<Bytes, byte[]> failing = WindrowKeyValueStore.of("counts", DslStoreFormat.PLAIN);
        InternalMockProcessorContext<Object, Object> without = Contexts.withoutChangelog(folder.toFile());
        assertThrows(ProcessorStateException.class, () -> failing.init(without, failing));
        setState(right);
        open(Contexts.withoutChangelog(folder.toFile()), DslStoreFormat.PLAIN);
        assertEquals(1, count());
    }

    @Test
    void aStateThatIsNotUnderstoodIsNotUsed() {
        open();
        put(0, 1, "value");
        store.commit(Map.of(CHANGELOG, 5L));
        store.close();
        setState(new byte[] {99});
        open();
        assertEquals(0, count());
        assertEquals(OFFSET_UNKNOWN, store.committedOffset(CHANGELOG));
    }

    /** Returns what the state was. */
    private byte[] setState(byte[] value) {
        byte[] key = "state".getBytes();
        try (Database database = Database.open(files(), new Options().log(false))) {
            Keyspace states = database.keyspace("state");
            byte[] before = states.getOrNull(key);
            states.put(key, value);
            database.persist();
            return before;
        }
    }
}
