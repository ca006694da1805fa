package io.windrow.kafka.streams;

import static io.windrow.kafka.streams.Contexts.key;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.mockito.Mockito.mock;

import java.nio.file.Path;
import java.util.ConcurrentModificationException;
import java.util.HashMap;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.clients.producer.MockProducer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.common.utils.LogCaptureAppender;
import org.apache.kafka.common.utils.LogContext;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.errors.DefaultProductionExceptionHandler;
import org.apache.kafka.streams.errors.TaskCorruptedException;
import org.apache.kafka.streams.errors.TaskMigratedException;
import org.apache.kafka.streams.internals.StreamsConfigUtils.ProcessingMode;
import org.apache.kafka.streams.processor.TaskId;
import org.apache.kafka.streams.processor.internals.ProcessorTopology;
import org.apache.kafka.streams.processor.internals.RecordCollector;
import org.apache.kafka.streams.processor.internals.RecordCollectorImpl;
import org.apache.kafka.streams.processor.internals.StreamsProducer;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.internals.CachedStateStore;
import org.apache.kafka.test.InternalMockProcessorContext;
import org.apache.kafka.test.StreamsTestUtils;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** After a kill a store has all transactions that it has seen committed, and nothing of the one after them. */
class TransactionWatchTest {
    private static final TopicPartition CHANGELOG = new TopicPartition("application-counts-changelog", 0);
    private static final long OFFSET_UNKNOWN = -4;
    private static final int MEMTABLE_BYTES = 64 << 10;

    @TempDir
    Path folder;

    /** What the producer of the thread has sent and the broker has acknowledged. */
    private final Map<TopicPartition, Long> acknowledged = new HashMap<>();
    private final MockProducer<byte[], byte[]> producer = producer();
    private final StreamsProducer thread =
            new StreamsProducer(producer, ProcessingMode.EXACTLY_ONCE_V2, Time.SYSTEM, new LogContext());
    private final Count commits = Count.commits(producer);
    private final Count aborts = Count.aborts(producer);
    private String changelog = CHANGELOG.topic();
    private String guarantee = StreamsConfig.EXACTLY_ONCE_V2;
    private boolean hasRace;
    private boolean isStandby;
    /** Each commit that is seen is persisted at once. */
    private String persistInterval = "0";
    private KeyValueStore<Bytes, byte[]> store;
    private InternalMockProcessorContext<Object, Object> context;

    private static MockProducer<byte[], byte[]> producer() {
        return new MockProducer<>(true, null, new ByteArraySerializer(), new ByteArraySerializer());
    }

    private void open() {
        if (store != null) {
            store.close();
        }
        store = open("counts");
    }

    /** A persist may still go on: its files would appear in the folder while that is removed. */
    @AfterEach
    void close() {
        if (store != null) {
            store.close();
        }
    }

    private KeyValueStore<Bytes, byte[]> open(String name) {
        Properties properties = StreamsTestUtils.getStreamsConfig();
        properties.put(StreamsConfig.PROCESSING_GUARANTEE_CONFIG, guarantee);
        properties.put(StreamsConfig.APPLICATION_ID_CONFIG, "application");
        properties.put(Settings.PERSIST_INTERVAL, persistInterval);
        properties.put(Settings.MEMTABLE_BYTES, String.valueOf(MEMTABLE_BYTES));
        context = new InternalMockProcessorContext<>(
                folder.toFile(), Serdes.Bytes(), Serdes.ByteArray(), new StreamsConfig(properties)) {
            private final RecordCollector collector = collector(this);

            @Override
            public String changelogFor(String store) {
                return changelog == null ? null : changelog.replace("counts", store);
            }

            @Override
            public RecordCollector recordCollector() {
                return isStandby ? null : collector;
            }
        };
        Contexts.process(context, 0);
        KeyValueStore<Bytes, byte[]> opened = WindrowStores.keyValueStore(name).get();
        opened.init(context, opened);
        return opened;
    }

    private RecordCollector collector(InternalMockProcessorContext<Object, Object> context) {
        LogContext log = new LogContext();
        return new RecordCollectorImpl(
                log, new TaskId(0, 0), thread, new DefaultProductionExceptionHandler(), context.metrics(),
                mock(ProcessorTopology.class)) {
            @Override
            public Map<TopicPartition, Long> offsets() {
                if (hasRace) {
                    hasRace = false;
                    throw new ConcurrentModificationException();
                }
                return Map.copyOf(acknowledged);
            }
        };
    }

    /** A write, and its record for the changelog. */
    private void put(long offset) {
        put(offset, 1);
    }

    private void put(long offset, int bytes) {
        store.put(key("key " + offset), new byte[bytes]);
        acknowledged.put(CHANGELOG, offset);
    }

    private String contents() {
        StringBuilder contents = new StringBuilder();
        store.all().forEachRemaining(it -> contents.append(new String(it.key.get()).substring(4)));
        return contents.toString();
    }

    @Test
    void committedTransactionsSurviveAndTheNextOneDoesNot() {
        open();
        put(1);
        put(2);
        commits.record();
        put(3);
        put(4);
        assertEquals(2, store.committedOffset(CHANGELOG));
        open();
        assertEquals("12", contents());
        assertEquals(2, store.committedOffset(CHANGELOG));
    }

    /** Nobody knows what has happened since the last write. */
    @Test
    void aTransactionThatWasCommittedAfterTheLastWriteIsNotSeen() {
        open();
        put(1);
        put(2);
        commits.record();
        open();
        assertEquals("", contents());
        assertEquals(OFFSET_UNKNOWN, store.committedOffset(CHANGELOG));
    }

    @Test
    void severalTransactionsAreSeen() {
        open();
        for (int transaction = 0; transaction < 3; transaction++) {
            put(transaction * 2 + 1);
            put(transaction * 2 + 2);
            commits.record();
        }
        put(7);
        open();
        assertEquals("123456", contents());
        assertEquals(6, store.committedOffset(CHANGELOG));
    }

    @Test
    void aTransactionIsNotPersistedBeforeItIsDue() {
        persistInterval = Contexts.A_YEAR;
        open();
        put(1, 100);
        commits.record();
        put(2, MEMTABLE_BYTES - 500);
        assertEquals(1, store.committedOffset(CHANGELOG));
        open();
        assertEquals("", contents());
        assertEquals(OFFSET_UNKNOWN, store.committedOffset(CHANGELOG));
    }

    @Test
    void transactionsArePersistedTogetherWhenTheyFillAMemtable() {
        persistInterval = Contexts.A_YEAR;
        open();
        put(1, MEMTABLE_BYTES / 2);
        commits.record();
        put(2, MEMTABLE_BYTES / 2);
        commits.record();
        put(3, MEMTABLE_BYTES / 2);
        commits.record();
        // From here on the next ones are counted.
        put(4);
        open();
        assertEquals("12", contents());
        assertEquals(2, store.committedOffset(CHANGELOG));
    }

    /** The store has had writes since, at the moment when it is due. */
    @Test
    void nothingIsPersistedBetweenTwoTransactions() {
        persistInterval = Contexts.A_YEAR;
        open();
        put(1, 100);
        commits.record();
        put(2, 2 * MEMTABLE_BYTES);
        put(3, 2 * MEMTABLE_BYTES);
        open();
        assertEquals("", contents());
    }

    @Test
    void aCommitOfKafkaPersistsAllTransactions() {
        persistInterval = Contexts.A_YEAR;
        open();
        put(1);
        commits.record();
        put(2);
        commits.record();
        store.commit(Map.of(CHANGELOG, 2L));
        put(3);
        open();
        assertEquals("12", contents());
        assertEquals(2, store.committedOffset(CHANGELOG));
    }

    /** A commit before the first write that is watched says nothing about what came before. */
    @Test
    void aCommitBeforeTheFirstWriteIsNotTaken() {
        open();
        commits.record();
        put(1);
        commits.record();
        commits.record();
        put(2);
        put(3);
        open();
        assertEquals("1", contents());
        assertEquals(1, store.committedOffset(CHANGELOG));
    }

    /** Kafka wipes the tasks of the thread then. */
    @Test
    void aWriteAfterAnAbortIsRefused() {
        open();
        put(1);
        commits.record();
        put(2);
        aborts.record();
        assertThrows(TaskMigratedException.class, () -> put(3));
        assertThrows(TaskMigratedException.class, () -> put(4));
        store.commit(Map.of(CHANGELOG, 4L));
        open();
        assertEquals("1", contents());
        assertEquals(1, store.committedOffset(CHANGELOG));
    }

    /** Kafka asks the stores to flush before it commits. Otherwise it would commit the input of what was aborted. */
    @Test
    void aCommitAfterAnAbortIsRefused() {
        open();
        put(1);
        aborts.record();
        assertThrows(TaskMigratedException.class, () -> ((CachedStateStore<?, ?>) store).flushCache());
        open();
        ((CachedStateStore<?, ?>) store).flushCache();
        put(2);
        ((CachedStateStore<?, ?>) store).flushCache();
        commits.record();
        ((CachedStateStore<?, ?>) store).flushCache();
        open();
        assertEquals("2", contents());
    }

    /** Also those without a changelog of their own: the next commit of the thread would lose the updates. */
    @Test
    void anAbortConcernsAllStoresOfTheThread() {
        open();
        changelog = "input";
        KeyValueStore<Bytes, byte[]> other = open("others");
        put(1);
        aborts.record();
        assertThrows(TaskMigratedException.class, () -> other.put(key("key"), new byte[1]));
        store.close();
        other.put(key("key"), new byte[1]);
        other.close();
    }

    /** What remains. */
    @Test
    void updatesThatACommitHasLostAreLogged() {
        open();
        KeyValueStore<Bytes, byte[]> other = open("others");
        put(1);
        aborts.record();
        assertThrows(TaskMigratedException.class, () -> other.put(key("key"), new byte[1]));
        commits.record();
        try (LogCaptureAppender log = LogCaptureAppender.createAndRegister(ProducerWatch.class)) {
            assertThrows(TaskMigratedException.class, () -> put(2));
            assertTrue(log.getEvents().stream().anyMatch(it -> it.getLevel().equals("ERROR") && it.getMessage().contains("counts")));
        }
        other.close();
    }

    /** What was seen committed and not persisted cannot be told from what was aborted. */
    @Test
    void nothingIsPersistedAfterAnAbort() {
        persistInterval = Contexts.A_YEAR;
        open();
        put(1);
        commits.record();
        put(2);
        aborts.record();
        store.commit(Map.of(CHANGELOG, 2L));
        open();
        assertEquals("", contents());
        assertEquals(OFFSET_UNKNOWN, store.committedOffset(CHANGELOG));
    }

    @Test
    void anAbortOfOthersIsNoneOfTheStore() {
        open();
        put(1);
        commits.record();
        store.commit(Map.of(CHANGELOG, 1L));
        aborts.record();
        put(2);
        commits.record();
        put(3);
        open();
        assertEquals("12", contents());
    }

    /** Nobody knows what came first. If it was the commit, nothing is lost: all is read again that was not committed. */
    @Test
    void aWriteIsRefusedIfTheOrderOfACommitAndAnAbortIsNotKnown() {
        open();
        put(1);
        commits.record();
        aborts.record();
        assertThrows(TaskMigratedException.class, () -> put(2));
        store.commit(Map.of(CHANGELOG, 2L));
        open();
        assertEquals("", contents());
        put(1);
        commits.record();
        put(2);
        assertEquals(1, store.committedOffset(CHANGELOG));
    }

    /** A look of another store in between tells the order. */
    @Test
    void storesOfAThreadKnowWhatOneOfThemHasSeen() {
        open();
        KeyValueStore<Bytes, byte[]> other = open("others");
        put(1);
        commits.record();
        other.put(key("key"), new byte[1]);
        aborts.record();
        assertThrows(TaskMigratedException.class, () -> other.put(key("key"), new byte[1]));
        other.close();
        put(2);
        assertEquals(1, store.committedOffset(CHANGELOG));
    }

    /** A look of one store takes nothing from the others. */
    @Test
    void eachStoreSeesEachTransactionWhoeverHasLookedBefore() {
        open();
        KeyValueStore<Bytes, byte[]> other = open("others");
        TopicPartition changelogOfOther = new TopicPartition("application-others-changelog", 0);
        other.put(key("key 1"), new byte[1]);
        acknowledged.put(changelogOfOther, 10L);
        for (int transaction = 1; transaction <= 3; transaction++) {
            put(transaction);
            commits.record();
            put(transaction + 10);
        }
        assertEquals(OFFSET_UNKNOWN, other.committedOffset(changelogOfOther));
        other.put(key("key 2"), new byte[1]);
        assertEquals(10, other.committedOffset(changelogOfOther));
        // It has a write of the transaction that is open, and none of those that have ended since.
        commits.record();
        acknowledged.put(changelogOfOther, 20L);
        other.put(key("key 3"), new byte[1]);
        assertEquals(20, other.committedOffset(changelogOfOther));
        other.close();
    }

    /** What its producer had not committed is in no transaction. */
    @Test
    void anotherProducerOfTheThreadIsAnAbort() {
        open();
        put(1);
        commits.record();
        put(2);
        thread.resetProducer(producer());
        assertThrows(TaskMigratedException.class, () -> put(3));
        open();
        assertEquals("1", contents());
    }

    /** A write of an input has no record: it counts as soon as a transaction is committed, and all that the task reads with it. */
    @Test
    void aStoreOfAnInputTakesTheOffsetsThatItHasRead() {
        changelog = "input";
        TopicPartition input = new TopicPartition("input", 0);
        open();
        Contexts.process(context, 7);
        store.put(key("key 1"), new byte[1]);
        // The task also writes to its input.
        acknowledged.put(input, 100L);
        aborts.record();
        Contexts.process(context, 8);
        store.put(key("key 2"), new byte[1]);
        commits.record();
        Contexts.process(context, 9);
        store.put(key("key 3"), new byte[1]);
        store.commit(Map.of(input, 9L));
        open();
        assertEquals("12", contents());
        assertEquals(8, store.committedOffset(input));
    }

    @Test
    void aStoreWithoutAChangelogHasItsCommittedTransactions() {
        changelog = null;
        open();
        put(1);
        commits.record();
        put(2);
        open();
        assertEquals("1", contents());
        put(2);
        store.commit(Map.of());
        open();
        assertEquals("12", contents());
    }

    /** Kafka commits the stores of a task whose transaction has failed, before it wipes the task. */
    @Test
    void aCommitOfKafkaCountsOnlyIfTheTransactionIsCommitted() {
        open();
        put(1);
        commits.record();
        store.commit(Map.of(CHANGELOG, 1L));
        put(2);
        store.commit(Map.of(CHANGELOG, 2L));
        open();
        assertEquals("1", contents());
        assertEquals(1, store.committedOffset(CHANGELOG));
    }

    /** Kafka gives an active task the open stores of its standby, without a call that says so. */
    @Test
    void aStandbyThatBecomesActiveIsWatched() {
        isStandby = true;
        open();
        store.commit(Map.of());
        isStandby = false;
        put(1);
        commits.record();
        put(2);
        store.commit(Map.of(CHANGELOG, 2L));
        open();
        assertEquals("1", contents());
        assertEquals(1, store.committedOffset(CHANGELOG));
    }

    /** What was refused may not be in the changelog, which is all that a standby has. */
    @Test
    void aStandbyWithUncommittedWritesIsCorrupted() {
        open();
        put(1);
        commits.record();
        put(2);
        store.commit(Map.of(CHANGELOG, 2L));
        isStandby = true;
        assertThrows(TaskCorruptedException.class, () -> store.commit(Map.of(CHANGELOG, 1L)));
        assertThrows(TaskCorruptedException.class, () -> store.commit(Map.of(CHANGELOG, 1L)));
        open();
        assertEquals("1", contents());
    }

    /** Kafka's map of offsets is changed by another thread. */
    @Test
    void aRaceForTheOffsetsIsNoError() {
        open();
        put(1);
        commits.record();
        hasRace = true;
        put(2);
        assertEquals(OFFSET_UNKNOWN, store.committedOffset(CHANGELOG));
        commits.record();
        put(3);
        assertEquals(2, store.committedOffset(CHANGELOG));
    }

    /** Without exactly-once Kafka commits the store itself. */
    @Test
    void thereIsNoWatchWithoutExactlyOnce() {
        guarantee = StreamsConfig.AT_LEAST_ONCE;
        open();
        put(1);
        commits.record();
        put(2);
        open();
        assertEquals("", contents());
    }
}
