package io.windrow.kafka.streams;

import io.windrow.kafka.streams.ProducerWatch.End;
import java.util.ConcurrentModificationException;
import java.util.Map;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.processor.StateStoreContext;
import org.apache.kafka.streams.processor.internals.InternalProcessorContext;
import org.apache.kafka.streams.processor.internals.ProcessorContextUtils;
import org.apache.kafka.streams.processor.internals.RecordCollector;
import org.apache.kafka.streams.processor.internals.StreamsProducer;
import org.apache.kafka.streams.query.Position;

/**
 * Knows which writes of a store are in a committed transaction. With exactly-once, Kafka does not report commits to the stores of
 * a running task, and has a commit of a store for failed ones. There is one for each store of an active task; those of a thread
 * share a {@link ProducerWatch}.
 *
 * <p>Each write looks first. The thread that makes the writes also commits their transactions, so all ends that a look sees
 * come after the writes before it and none after those that follow. What that says depends on the changelog:
 *
 * <ul>
 *   <li>Its own: a write and its record for the changelog are one step, so the write is in the first transaction that ends
 *       after it. If that is committed, the last acknowledged offset of the changelog is that of the last write. If it is aborted,
 *       the store has what the changelog will never have.
 *   <li>An input of the task, or none: a write has no record, and belongs to the offsets of the input that caused it. Each commit
 *       of the thread has those of all its tasks. So the next commit after a write has them, whatever was aborted meanwhile:
 *       a task that must read them again has closed its stores. The offset in an input is that of the last record that has
 *       written, which the position of the store knows.
 * </ul>
 *
 * <p>Concurrency: the caller has the lock of the store.
 */
final class TransactionWatch {
    private enum Changelog {
        OWN,
        INPUT,
        NONE
    }

    private final RecordCollector collector;
    private final StreamsProducer thread;
    private final ProducerWatch producer;
    private final Changelog kind;
    /** Null if there is none. */
    private final TopicPartition changelog;
    /** The number of the last end that concerns no write of the store that is not committed. */
    private long seen;
    /** Whether some write may be in no committed transaction, and it will never be known. */
    private boolean isUnsure;

    private TransactionWatch(
            RecordCollector collector, StreamsProducer thread, ProducerWatch producer, Changelog kind, TopicPartition changelog) {
        this.collector = collector;
        this.thread = thread;
        this.producer = producer;
        this.kind = kind;
        this.changelog = changelog;
        this.seen = producer.look(thread);
    }

    /** The collector of the records of the task; null if it is a standby, or has none. */
    static RecordCollector collectorOf(StateStoreContext context) {
        return context instanceof RecordCollector.Supplier task ? task.recordCollector() : null;
    }

    /** The watch for the store of an active task; null if there is no producer to watch. */
    static TransactionWatch of(StateStoreContext context, String store) {
        Object guarantee = context.appConfigs().get(StreamsConfig.PROCESSING_GUARANTEE_CONFIG);
        RecordCollector collector = collectorOf(context);
        StreamsProducer thread = ProducerWatch.threadProducer(collector);
        if (!StreamsConfig.EXACTLY_ONCE_V2.equals(guarantee)
                || thread == null
                || !(context instanceof InternalProcessorContext<?, ?> task)) {
            return null;
        }
        ProducerWatch producer = ProducerWatch.of(thread);
        if (producer == null) {
            return null;
        }
        String topic = task.changelogFor(store);
        boolean isOwn = ProcessorContextUtils.changelogFor(context, store, true).equals(topic);
        Changelog kind = topic == null ? Changelog.NONE : isOwn ? Changelog.OWN : Changelog.INPUT;
        TopicPartition changelog = topic == null ? null : new TopicPartition(topic, context.taskId().partition());
        return new TransactionWatch(collector, thread, producer, kind, changelog);
    }

    /** The store has writes from before the first look: nothing is known of their transactions. */
    void distrust() {
        isUnsure = true;
    }

    /** Whether Kafka makes commits of the store only when its writes are committed, or before it wipes the task. */
    boolean mustAgree() {
        return kind != Changelog.NONE;
    }

    /**
     * Looks how the transactions of the store have ended. {@code hasUncommitted}: it has writes since its last commit. Once they
     * were aborted, each look says so.
     */
    End look(boolean hasUncommitted) {
        long now = producer.look(thread);
        End end = hasUncommitted ? end() : End.OPEN;
        if (end == End.ABORTED) {
            return end;
        }
        seen = now;
        return end;
    }

    private End end() {
        if (kind != Changelog.OWN) {
            return producer.hasCommitAfter(seen) ? End.COMMITTED : End.OPEN;
        }
        End end = producer.endAfter(seen);
        isUnsure |= end == End.EITHER;
        return isUnsure ? End.EITHER : end;
    }

    /**
     * The offset of the last write, for a store whose writes are committed; null if it is not known. {@code before}: those of the
     * last commit.
     */
    Map<TopicPartition, Long> offsets(Position position, Map<TopicPartition, Long> before) {
        if (kind == Changelog.NONE) {
            return Map.of();
        }
        Long offset = kind == Changelog.OWN ? acknowledged() : read(position, before.get(changelog));
        return offset == null ? null : Map.of(changelog, offset);
    }

    /** The last offset of the changelog that was acknowledged. */
    private Long acknowledged() {
        try {
            return collector.offsets().get(changelog);
        } catch (ConcurrentModificationException race) {
            // Kafka copies a map that acknowledgements of other records change. The next commit is seen, too.
            return null;
        }
    }

    /** The last offset of the input that has written. A restore does not move the position. */
    private Long read(Position position, Long restored) {
        Long written = position.getPartitionPositions(changelog.topic()).get(changelog.partition());
        return written == null || (restored != null && restored > written) ? restored : written;
    }
}
