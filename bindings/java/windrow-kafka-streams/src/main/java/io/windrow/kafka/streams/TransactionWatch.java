package io.windrow.kafka.streams;

import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.util.ConcurrentModificationException;
import java.util.Map;
import org.apache.kafka.clients.producer.Producer;
import org.apache.kafka.common.Metric;
import org.apache.kafka.common.MetricName;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.processor.StateStoreContext;
import org.apache.kafka.streams.processor.internals.InternalProcessorContext;
import org.apache.kafka.streams.processor.internals.RecordCollector;
import org.apache.kafka.streams.processor.internals.RecordCollectorImpl;
import org.apache.kafka.streams.processor.internals.StreamsProducer;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Knows which writes of a store are in a committed transaction, from the producer that has sent their records. With
 * exactly-once, Kafka does not report commits to the stores of a running task, and has a commit of a store for failed ones.
 *
 * <p>A producer adds to {@code txn-commit-time-ns-total} when a call to commit has succeeded, and only then; and to
 * {@code txn-abort-time-ns-total} when one to abort has. A write of a store and its record for the changelog are one step of
 * the thread that also commits. Each write looks at both. So if from one look to the next the first has grown, the producer is
 * the same object, and the second has not grown since the first look, then all records that were sent before the first of
 * them are committed, and the last acknowledged offset of the changelog is that of the last write. After an abort, or with
 * another producer, some writes of the store may be in no transaction: nothing is known any more until the store is opened
 * again. An abort that fails is not counted, but then the same producer can commit no more without another one.
 *
 * <p>A producer without these metrics, as in Kafka's test driver, is not watched.
 *
 * <p>Concurrency: the caller has the lock of the store.
 */
final class TransactionWatch {
    private static final Logger LOG = LoggerFactory.getLogger(TransactionWatch.class);
    private static final String COMMITS = "txn-commit-time-ns-total";
    private static final String ABORTS = "txn-abort-time-ns-total";
    /** The way to the producer; null if this Kafka has another one. */
    private static final Field STREAMS_PRODUCER = streamsProducer();
    private static final Method KAFKA_PRODUCER = kafkaProducer();

    private final RecordCollector collector;
    private final TopicPartition changelog;
    private Producer<?, ?> producer;
    private Metric commits;
    private Metric aborts;
    /** What the metrics were at the last look. */
    private double committed;
    private double aborted;
    /** Whether some write may be in no transaction. */
    private boolean isUnsure;

    private TransactionWatch(RecordCollector collector, TopicPartition changelog) {
        this.collector = collector;
        this.changelog = changelog;
    }

    /** The collector of the records of the task; null if it is a standby, or has none. */
    static RecordCollector collectorOf(StateStoreContext context) {
        return context instanceof RecordCollector.Supplier task ? task.recordCollector() : null;
    }

    /** The watch for the store of an active task; null if there is no producer to watch, or no changelog of its own. */
    static TransactionWatch of(StateStoreContext context, String store) {
        Object guarantee = context.appConfigs().get(StreamsConfig.PROCESSING_GUARANTEE_CONFIG);
        if (!StreamsConfig.EXACTLY_ONCE_V2.equals(guarantee)
                || !(context instanceof RecordCollector.Supplier active)
                || !(context instanceof InternalProcessorContext<?, ?> task)) {
            return null;
        }
        String topic = task.changelogFor(store);
        // An input that serves as the changelog has records of others.
        if (active.recordCollector() == null || topic == null || !topic.endsWith("-" + store + "-changelog")) {
            return null;
        }
        TopicPartition changelog = new TopicPartition(topic, context.taskId().partition());
        TransactionWatch watch = new TransactionWatch(active.recordCollector(), changelog);
        return watch.attach(watch.current()) ? watch : null;
    }

    TopicPartition changelog() {
        return changelog;
    }

    /** The store has writes from before the first look: nothing is known of their transactions. */
    void distrust() {
        isUnsure = true;
    }

    /**
     * Whether all writes are committed that were made before the last look. This is the next look; {@code hasUncommitted}: the
     * store has writes since its last commit.
     */
    boolean isCommitted(boolean hasUncommitted) {
        Producer<?, ?> now = current();
        if (now != producer) {
            isUnsure |= hasUncommitted;
            attach(now);
        }
        double commitsNow = value(commits);
        double abortsNow = value(aborts);
        // An abort concerns no writes that are committed already.
        isUnsure |= hasUncommitted && abortsNow != aborted;
        boolean hasCommitted = commitsNow > committed && !isUnsure;
        committed = commitsNow;
        aborted = abortsNow;
        return hasCommitted;
    }

    /** The last offset of the changelog that was acknowledged; null if it is not known. */
    Long acknowledgedOffset() {
        try {
            return collector.offsets().get(changelog);
        } catch (ConcurrentModificationException race) {
            // Kafka copies a map that acknowledgements of other records change. The next commit is seen, too.
            return null;
        }
    }

    private boolean attach(Producer<?, ?> now) {
        producer = now;
        commits = metric(COMMITS);
        aborts = metric(ABORTS);
        committed = value(commits);
        aborted = value(aborts);
        return commits != null && aborts != null;
    }

    private static double value(Metric metric) {
        return metric == null ? 0 : (double) metric.metricValue();
    }

    private Metric metric(String name) {
        if (producer != null) {
            for (Map.Entry<MetricName, ? extends Metric> metric : producer.metrics().entrySet()) {
                if (metric.getKey().name().equals(name)) {
                    return metric.getValue();
                }
            }
        }
        return null;
    }

    /** The producer that the task has now. Kafka gives no other access to it. */
    private Producer<?, ?> current() {
        if (!(collector instanceof RecordCollectorImpl) || STREAMS_PRODUCER == null || KAFKA_PRODUCER == null) {
            return null;
        }
        try {
            return (Producer<?, ?>) KAFKA_PRODUCER.invoke(STREAMS_PRODUCER.get(collector));
        } catch (ReflectiveOperationException | RuntimeException error) {
            LOG.warn("The producer of a task cannot be watched: more is restored after a kill", error);
            return null;
        }
    }

    private static Field streamsProducer() {
        try {
            Field field = RecordCollectorImpl.class.getDeclaredField("streamsProducer");
            field.setAccessible(true);
            return field;
        } catch (ReflectiveOperationException | RuntimeException | LinkageError error) {
            LOG.warn("The producers of tasks cannot be watched: more is restored after a kill", error);
            return null;
        }
    }

    private static Method kafkaProducer() {
        try {
            Method method = StreamsProducer.class.getDeclaredMethod("kafkaProducer");
            method.setAccessible(true);
            return method;
        } catch (ReflectiveOperationException | RuntimeException | LinkageError error) {
            LOG.warn("The producers of tasks cannot be watched: more is restored after a kill", error);
            return null;
        }
    }
}
