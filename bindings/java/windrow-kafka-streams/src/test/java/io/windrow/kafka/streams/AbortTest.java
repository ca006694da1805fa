package io.windrow.kafka.streams;

import static io.windrow.kafka.streams.StreamTasks.closeClean;
import static io.windrow.kafka.streams.StreamTasks.closeDirty;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Path;
import java.util.List;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.utils.LogCaptureAppender;
import org.apache.kafka.streams.TopologyWrapper;
import org.apache.kafka.streams.errors.TaskMigratedException;
import org.apache.kafka.streams.processor.api.ContextualProcessor;
import org.apache.kafka.streams.processor.api.Record;
import org.apache.kafka.streams.processor.internals.StreamTask;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.StoreBuilder;
import org.apache.kafka.streams.state.Stores;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Kafka closes one task of a thread, which aborts the transaction of all, and lets the others live. */
class AbortTest {
    @TempDir
    Path folder;

    private boolean isCached;

    private StreamTasks tasks() {
        StoreBuilder<KeyValueStore<String, String>> store =
                Stores.keyValueStoreBuilder(WindrowStores.keyValueStore("counts"), Serdes.String(), Serdes.String());
        TopologyWrapper topology = new TopologyWrapper();
        topology.addSource("source", Serdes.String().deserializer(), Serdes.String().deserializer(), StreamTasks.INPUT);
        topology.addProcessor("processor", Keeper::new, "source");
        topology.addStateStore(isCached ? store.withCachingEnabled() : store, "processor");
        return new StreamTasks(folder, topology);
    }

    /** Keeps each record in the store. */
    private static final class Keeper extends ContextualProcessor<String, String, Void, Void> {
        @Override
        public void process(Record<String, String> record) {
            KeyValueStore<String, String> store = context().getStateStore("counts");
            store.put(record.key(), record.value());
        }
    }

    private static Long committedOffset(StreamTask task) {
        return task.store("counts").committedOffset(new TopicPartition(StreamTasks.CHANGELOG, task.id().partition()));
    }

    /** Nothing of the one that lives is lost: what it has read is not committed. */
    @Test
    void theNextWriteIsRefused() {
        StreamTasks tasks = tasks();
        StreamTask closed = tasks.start(0);
        StreamTask alive = tasks.start(1);
        tasks.process(alive, "a");
        tasks.commit(alive);
        tasks.process(alive, "b");
        closeDirty(closed);
        assertThrows(TaskMigratedException.class, () -> tasks.process(alive, "c"));
        assertThrows(TaskMigratedException.class, () -> tasks.commit(alive));
        assertEquals(1, tasks.committedRecords());
        closeDirty(alive);
    }

    /** Otherwise the commit would have the offset of what was read, and the changelog would not have what came of it. */
    @Test
    void aCommitBeforeTheNextWriteIsRefused() {
        StreamTasks tasks = tasks();
        StreamTask closed = tasks.start(0);
        StreamTask alive = tasks.start(1);
        tasks.process(alive, "a");
        closeDirty(closed);
        assertThrows(TaskMigratedException.class, () -> tasks.commit(alive));
        assertEquals(0, tasks.committedRecords());
        closeDirty(alive);
    }

    /** The thread commits the transactions of all of its tasks. */
    @Test
    void theStoresOfOtherTasksRefuseTheirWrites() {
        StreamTasks tasks = tasks();
        StreamTask closed = tasks.start(0);
        StreamTask alive = tasks.start(1);
        StreamTask other = tasks.start(2);
        tasks.process(other, "a");
        tasks.commit(other);
        tasks.process(alive, "b");
        closeDirty(closed);
        assertThrows(TaskMigratedException.class, () -> tasks.process(other, "c"));
        assertEquals(1, tasks.committedRecords());
        closeDirty(alive);
        closeDirty(other);
    }

    /** Kafka's cache has nothing to flush, so nobody asks the store. */
    @Test
    void whatIsLostAllTheSameIsLogged() {
        isCached = true;
        StreamTasks tasks = tasks();
        StreamTask closed = tasks.start(0);
        StreamTask alive = tasks.start(1);
        tasks.process(alive, "a");
        closeDirty(closed);
        try (LogCaptureAppender log = LogCaptureAppender.createAndRegister(ProducerWatch.class)) {
            tasks.commit(alive);
            assertThrows(TaskMigratedException.class, () -> tasks.process(alive, "c"));
            List<String> messages = log.getMessages("WARN");
            assertTrue(messages.stream().anyMatch(it -> it.contains("counts")), messages.toString());
        }
        closeDirty(alive);
    }

    @Test
    void anAbortBetweenTwoTransactionsIsNoneOfOthers() {
        StreamTasks tasks = tasks();
        StreamTask closed = tasks.start(0);
        StreamTask alive = tasks.start(1);
        tasks.process(alive, "a");
        tasks.commit(alive);
        tasks.process(closed, "b");
        closeDirty(closed);
        tasks.process(alive, "c");
        tasks.commit(alive);
        tasks.process(alive, "d");
        assertEquals(2, tasks.committedRecords());
        assertEquals(1, committedOffset(alive));
        closeDirty(alive);
    }

    /** Kafka commits the others, flushes the task that it wipes, and closes it. */
    @Test
    void aCorruptedTaskIsNoneOfOthers() {
        StreamTasks tasks = tasks();
        StreamTask corrupted = tasks.start(0);
        StreamTask alive = tasks.start(1);
        tasks.process(alive, "a");
        tasks.process(corrupted, "b");
        tasks.commit(alive);
        closeDirty(corrupted);
        tasks.process(alive, "c");
        tasks.commit(alive);
        assertEquals(3, tasks.committedRecords());
        closeClean(alive);
    }
}
