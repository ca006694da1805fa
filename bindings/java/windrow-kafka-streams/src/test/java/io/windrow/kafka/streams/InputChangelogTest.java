package io.windrow.kafka.streams;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.nio.file.Path;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.TopologyWrapper;
import org.apache.kafka.streams.processor.StateStore;
import org.apache.kafka.streams.processor.api.ContextualProcessor;
import org.apache.kafka.streams.processor.api.Record;
import org.apache.kafka.streams.processor.internals.StreamTask;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.Stores;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** A task of Kafka whose store has the input as its changelog, and which also writes to its input. */
class InputChangelogTest {
    private static final TopicPartition INPUT = new TopicPartition(StreamTasks.INPUT, 0);

    @TempDir
    Path folder;

    private StreamTasks tasks() {
        TopologyWrapper topology = new TopologyWrapper();
        topology.addSource("source", Serdes.String().deserializer(), Serdes.String().deserializer(), StreamTasks.INPUT);
        topology.addProcessor("processor", Writer::new, "source");
        topology.addStateStore(
                Stores.keyValueStoreBuilder(WindrowStores.keyValueStore("counts"), Serdes.String(), Serdes.String())
                        .withLoggingDisabled(),
                "processor");
        topology.addSink("sink", StreamTasks.INPUT, Serdes.String().serializer(), Serdes.String().serializer(), "processor");
        topology.getInternalBuilder().connectSourceStoreAndTopic("counts", StreamTasks.INPUT);
        return new StreamTasks(folder, topology);
    }

    /** Keeps each record, and writes two. */
    private static final class Writer extends ContextualProcessor<String, String, String, String> {
        @Override
        public void process(Record<String, String> record) {
            KeyValueStore<String, String> store = context().getStateStore("counts");
            store.put(record.key(), record.value());
            context().forward(record);
            context().forward(record);
        }
    }

    /** Kafka gives the store the offset of what the task has written. */
    @Test
    void aCommitOfKafkaHasTheOffsetThatTheTaskHasRead() {
        StreamTasks tasks = tasks();
        StreamTask task = tasks.start(0);
        for (String key : new String[] {"a", "b", "c"}) {
            tasks.process(task, key);
        }
        tasks.commit(task);
        StateStore store = task.store("counts");
        task.suspend();
        task.postCommit(true);
        assertEquals(2, store.committedOffset(INPUT));
        task.closeClean();
    }
}
