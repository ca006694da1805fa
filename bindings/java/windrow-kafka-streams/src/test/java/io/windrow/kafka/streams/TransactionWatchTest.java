package io.windrow.kafka.streams;

import static io.windrow.kafka.streams.Contexts.key;
import static org.junit.jupiter.api.Assertions.assertEquals;

import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.metrics.Sensor;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.processor.internals.RecordCollector;
import org.apache.kafka.streams.processor.internals.metrics.ThreadMetrics;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.test.InternalMockProcessorContext;
import org.apache.kafka.test.MockRecordCollector;
import org.apache.kafka.test.StreamsTestUtils;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** After a kill a store has all transactions that it has seen committed, and nothing of the one after them. */
class TransactionWatchTest {
    private static final TopicPartition CHANGELOG = new TopicPartition("log", 0);
    private static final long OFFSET_UNKNOWN = -4;

    @TempDir
    Path folder;

    /** What the producer of the thread has sent and the broker has acknowledged. */
    private final Map<TopicPartition, Long> acknowledged = new HashMap<>();
    private String guarantee = StreamsConfig.EXACTLY_ONCE_V2;
    private Sensor commits;
    private KeyValueStore<Bytes, byte[]> store;

    private void open() {
        if (store != null) {
            store.close();
        }
        Properties properties = StreamsTestUtils.getStreamsConfig();
        properties.put(StreamsConfig.PROCESSING_GUARANTEE_CONFIG, guarantee);
        RecordCollector collector = new MockRecordCollector() {
            @Override
            public Map<TopicPartition, Long> offsets() {
                return Map.copyOf(acknowledged);
            }
        };
        InternalMockProcessorContext<Object, Object> context = new InternalMockProcessorContext<>(
                folder.toFile(), Serdes.Bytes(), Serdes.ByteArray(), new StreamsConfig(properties)) {
            @Override
            public String changelogFor(String store) {
                return CHANGELOG.topic();
            }

            @Override
            public RecordCollector recordCollector() {
                return collector;
            }
        };
        Contexts.process(context, 0);
        commits = ThreadMetrics.commitSensor(Thread.currentThread().getName(), context.metrics());
        store = WindrowStores.keyValueStore("counts").get();
        store.init(context, store);
    }

    /** A write, and its record for the changelog. */
    private void put(long offset) {
        store.put(key("key " + offset), new byte[] {1});
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
