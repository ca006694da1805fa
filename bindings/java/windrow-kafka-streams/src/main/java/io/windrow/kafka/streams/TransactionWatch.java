package io.windrow.kafka.streams;

import java.util.Map;
import org.apache.kafka.common.Metric;
import org.apache.kafka.common.MetricName;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.processor.StateStoreContext;
import org.apache.kafka.streams.processor.internals.InternalProcessorContext;
import org.apache.kafka.streams.processor.internals.RecordCollector;

/**
 * Notices between two writes of a store that Kafka has committed its transaction. With exactly-once, Kafka does not tell the
 * stores of a running task.
 *
 * <p>A thread of Kafka counts its commits ({@code commit-total}), and only after the transaction is committed. The transaction
 * has all records that the thread has sent. A write of a store and its record for the changelog are one step of this thread.
 * So if the count has changed from one write to the next, the changelog has all earlier writes, committed; and the last
 * offset that was acknowledged belongs to the last of them.
 *
 * <p>A thread that does not count, as in Kafka's test driver, is never seen to commit.
 *
 * <p>Concurrency: the caller has the lock of the store.
 */
final class TransactionWatch {
    private static final String GROUP = "stream-thread-metrics";
    private static final String COMMITS = "commit-total";
    private static final double UNKNOWN = Double.NaN;

    private final StateStoreContext context;
    private final TopicPartition changelog;
    private Thread thread;
    /** The commits of {@code thread}; null if it does not count them. */
    private Metric commits;
    /** The count before the last write. */
    private double count = UNKNOWN;

    private TransactionWatch(StateStoreContext context, TopicPartition changelog) {
        this.context = context;
        this.changelog = changelog;
    }

    /** The watch for a store; null if it has no changelog, or if Kafka commits it with each commit of its task. */
    static TransactionWatch of(StateStoreContext context, String store) {
        Object guarantee = context.appConfigs().get(StreamsConfig.PROCESSING_GUARANTEE_CONFIG);
        if (!StreamsConfig.EXACTLY_ONCE_V2.equals(guarantee)
                || !(context instanceof RecordCollector.Supplier)
                || !(context instanceof InternalProcessorContext<?, ?> task)) {
            return null;
        }
        String topic = task.changelogFor(store);
        if (topic == null) {
            return null;
        }
        TopicPartition changelog = new TopicPartition(topic, context.taskId().partition());
        return new TransactionWatch(context, changelog);
    }

    TopicPartition changelog() {
        return changelog;
    }

    /** Before each write: the last offset of the changelog, if all earlier writes are committed there; null if unknown. */
    Long committedOffset() {
        if (thread != Thread.currentThread()) {
            thread = Thread.currentThread();
            commits = commitsOf(thread);
            count = UNKNOWN;
        }
        if (commits == null) {
            return null;
        }
        double before = count;
        count = (double) commits.metricValue();
        if (Double.isNaN(before) || before == count) {
            return null;
        }
        RecordCollector collector = ((RecordCollector.Supplier) context).recordCollector();
        return collector == null ? null : collector.offsets().get(changelog);
    }

    private Metric commitsOf(Thread thread) {
        for (Map.Entry<MetricName, ? extends Metric> metric : context.metrics().metrics().entrySet()) {
            MetricName name = metric.getKey();
            if (name.group().equals(GROUP) && name.name().equals(COMMITS) && thread.getName().equals(name.tags().get("thread-id"))) {
                return metric.getValue();
            }
        }
        return null;
    }
}
