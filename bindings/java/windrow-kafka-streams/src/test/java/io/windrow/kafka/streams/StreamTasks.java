package io.windrow.kafka.streams;

import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import java.util.Set;
import java.util.stream.IntStream;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.MockConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.MockProducer;
import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.PartitionInfo;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.internals.RecordHeaders;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.apache.kafka.common.utils.LogContext;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.TopologyConfig;
import org.apache.kafka.streams.TopologyWrapper;
import org.apache.kafka.streams.errors.DefaultProductionExceptionHandler;
import org.apache.kafka.streams.internals.StreamsConfigUtils.ProcessingMode;
import org.apache.kafka.streams.processor.TaskId;
import org.apache.kafka.streams.processor.internals.InternalTopologyBuilder;
import org.apache.kafka.streams.processor.internals.MockStreamsMetrics;
import org.apache.kafka.streams.processor.internals.ProcessorContextImpl;
import org.apache.kafka.streams.processor.internals.ProcessorStateManager;
import org.apache.kafka.streams.processor.internals.ProcessorTopology;
import org.apache.kafka.streams.processor.internals.RecordCollectorImpl;
import org.apache.kafka.streams.processor.internals.StateDirectory;
import org.apache.kafka.streams.processor.internals.StreamTask;
import org.apache.kafka.streams.processor.internals.StreamsProducer;
import org.apache.kafka.streams.processor.internals.Task.TaskType;
import org.apache.kafka.streams.processor.internals.metrics.StreamsMetricsImpl;
import org.apache.kafka.streams.state.internals.ThreadCache;
import org.apache.kafka.test.StreamsTestUtils;

/**
 * Tasks of one thread, made of Kafka's own classes: they share a producer, and only that is not real. It counts what it has
 * committed and aborted, as the real one does. Kafka's cache has no room: it passes on each write at once.
 */
final class StreamTasks {
    static final String INPUT = "input";
    /** That of the store "counts". */
    static final String CHANGELOG = "application-counts-changelog";
    private static final int PARTITIONS = 3;
    private static final LogContext LOG = new LogContext();

    private final MockConsumer<byte[], byte[]> consumer = new MockConsumer<>("earliest");
    private final MockProducer<byte[], byte[]> producer = new CountingProducer();
    private final StreamsProducer thread = new StreamsProducer(producer, ProcessingMode.EXACTLY_ONCE_V2, Time.SYSTEM, LOG);
    private final StreamsMetricsImpl metrics = new MockStreamsMetrics(new Metrics());
    private final InternalTopologyBuilder topology;
    private final StreamsConfig configuration;
    private final StateDirectory directory;
    private final Map<TopicPartition, Long> offsets = new HashMap<>();

    StreamTasks(Path folder, TopologyWrapper topology) {
        Properties properties = StreamsTestUtils.getStreamsConfig("application");
        properties.put(StreamsConfig.PROCESSING_GUARANTEE_CONFIG, StreamsConfig.EXACTLY_ONCE_V2);
        properties.put(StreamsConfig.STATE_DIR_CONFIG, folder.toString());
        properties.put(Settings.PERSIST_INTERVAL, "0");
        this.configuration = new StreamsConfig(properties);
        this.topology = topology.getInternalBuilder("application").rewriteTopology(configuration);
        this.directory = new StateDirectory(configuration, Time.SYSTEM, true, false);
    }

    private static final class CountingProducer extends MockProducer<byte[], byte[]> {
        private final Count commits = Count.commits(this);
        private final Count aborts = Count.aborts(this);

        CountingProducer() {
            super(cluster(), true, null, new ByteArraySerializer(), new ByteArraySerializer());
        }

        @Override
        public void commitTransaction() {
            super.commitTransaction();
            commits.record();
        }

        @Override
        public void abortTransaction() {
            super.abortTransaction();
            aborts.record();
        }
    }

    /** Without it the mock sends each record to the first partition. */
    private static Cluster cluster() {
        Node broker = new Node(0, "broker", 0);
        Node[] replicas = {broker};
        List<PartitionInfo> partitions = IntStream.range(0, PARTITIONS)
                .mapToObj(it -> new PartitionInfo(CHANGELOG, it, broker, replicas, replicas)).toList();
        return new Cluster("cluster", List.of(broker), partitions, Set.of(), Set.of());
    }

    /** A task that runs; its number is that of its partition of the input. */
    StreamTask start(int number) {
        TaskId id = new TaskId(0, number);
        Set<TopicPartition> inputs = Set.of(new TopicPartition(INPUT, number));
        inputs.forEach(it -> offsets.put(it, 0L));
        consumer.assign(offsets.keySet());
        ProcessorTopology own = topology.buildSubtopology(0);
        ProcessorStateManager states = new ProcessorStateManager(
                id, TaskType.ACTIVE, true, LOG, directory, own.storeToChangelogTopic(), inputs);
        ThreadCache cache = new ThreadCache(LOG, 0, metrics);
        RecordCollectorImpl collector =
                new RecordCollectorImpl(LOG, id, thread, new DefaultProductionExceptionHandler(), metrics, own);
        ProcessorContextImpl context = new ProcessorContextImpl(id, configuration, states, metrics, cache);
        StreamTask task = new StreamTask(
                id, inputs, own, consumer, new TopologyConfig(configuration).getTaskConfig(), metrics, directory, cache, Time.SYSTEM,
                states, collector, context, LOG, false);
        task.initializeIfNeeded();
        task.completeRestoration(it -> {});
        return task;
    }

    /** The task processes the next record of its input, which has this key. */
    void process(StreamTask task, String key) {
        TopicPartition input = task.inputPartitions().iterator().next();
        long offset = offsets.merge(input, 1L, Long::sum) - 1;
        byte[] bytes = key.getBytes();
        task.addRecords(input, List.of(new ConsumerRecord<>(
                INPUT, input.partition(), offset, 0, TimestampType.CREATE_TIME, bytes.length, bytes.length, bytes, bytes,
                new RecordHeaders(), Optional.empty())));
        task.updateNextOffsets(input, new OffsetAndMetadata(offset + 1));
        task.process(0);
    }

    /** Kafka commits the transaction of the thread, with what these tasks have read. */
    void commit(StreamTask... tasks) {
        Map<TopicPartition, OffsetAndMetadata> read = new HashMap<>();
        for (StreamTask task : tasks) {
            read.putAll(task.prepareCommit(true));
        }
        thread.commitTransaction(read, consumer.groupMetadata());
        for (StreamTask task : tasks) {
            task.postCommit(false);
        }
    }

    /** Kafka wipes a task. If its thread has a transaction, it is aborted. */
    static void closeDirty(StreamTask task) {
        try {
            task.prepareCommit(false);
        } catch (RuntimeException swallowed) {
            // Kafka logs it.
        }
        task.suspend();
        task.closeDirty();
    }

    /** Kafka ends a task. */
    static void closeClean(StreamTask task) {
        task.suspend();
        task.postCommit(true);
        task.closeClean();
    }

    /** How many records are in committed transactions. */
    int committedRecords() {
        return producer.history().size();
    }
}
