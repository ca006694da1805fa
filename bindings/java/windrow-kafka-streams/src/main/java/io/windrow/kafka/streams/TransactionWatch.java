package io.windrow.kafka.streams;

import io.windrow.kafka.streams.ProducerWatch.End;
import io.windrow.kafka.streams.ProducerWatch.Writes;
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
 * Knows whether the writes of a store are in a committed transaction. With exactly-once, Kafka does not report commits to the
 * stores of a running task, and has a commit of a store for failed ones. There is one for each store of an active task; those of a
 * thread share a {@link ProducerWatch}.
 *
 * <p>Each write looks first. What a look says depends on the changelog:
 *
 * <ul>
 *   <li>Its own: a write and its record for the changelog are one step, so the write is in the first transaction that ends
 *       after it. If that is committed, the last acknowledged offset of the changelog is that of the last write. If it is aborted,
 *       the store has what the changelog will never have.
 *   <li>An input of the task, or none: a write has no record, and belongs to the offsets of the input that caused it. A commit
 *       of the thread has those of all its tasks, but for corrupted ones, which are wiped then. So the next commit after a write
 *       has them, whatever was aborted meanwhile: a task that must read them again has closed its stores. The offset in an input
 *       is that of the last record that has written, which the position of the store knows.
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
    private final Writes writes;

    private TransactionWatch(RecordCollector collector, ProducerWatch producer, Changelog kind, TopicPartition changelog, Writes writes) {
        this.collector = collector;
        this.thread = ProducerWatch.threadProducer(collector);
        this.producer = producer;
        this.kind = kind;
        this.changelog = changelog;
        this.writes = writes;
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
        return new TransactionWatch(collector, producer, kind, changelog, new Writes(store, isOwn));
    }

    /** The store has writes from before it was watched: nothing is known of their transactions. */
    void distrust() {
        producer.distrust(writes);
    }

    /** Whether Kafka makes commits of the store only when its writes are committed, or before it wipes the task. */
    boolean mustAgree() {
        return kind != Changelog.NONE;
    }

    /** How the transaction of the writes since the last commit has ended. Once it was aborted, each look says so. */
    End look() {
        return producer.look(thread, writes);
    }

    /** The name of a store of the thread whose writes were aborted, as of the last look; null if there is none. */
    String lostStore() {
        return producer.lostStore();
    }

    /** A write follows. */
    void begin() {
        producer.begin(writes);
    }

    /** The store has committed its writes otherwise, or is closed. */
    void forget() {
        producer.forget(writes);
    }

    /** The offsets for a commit that Kafka makes with these. They may be those that the task has produced into its own input. */
    Map<TopicPartition, Long> corrected(Map<TopicPartition, Long> given, Position position, Map<TopicPartition, Long> before) {
        Map<TopicPartition, Long> known = kind == Changelog.INPUT ? offsets(position, before) : null;
        return known == null || !given.containsKey(changelog) ? given : known;
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
