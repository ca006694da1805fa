package io.windrow.kafka.streams;

import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.ref.WeakReference;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.util.HashSet;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.WeakHashMap;
import org.apache.kafka.clients.producer.Producer;
import org.apache.kafka.common.Metric;
import org.apache.kafka.common.MetricName;
import org.apache.kafka.streams.processor.internals.RecordCollector;
import org.apache.kafka.streams.processor.internals.RecordCollectorImpl;
import org.apache.kafka.streams.processor.internals.StreamsProducer;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Tells how the transactions of a thread end, for all stores of its tasks: they share a producer.
 *
 * <p>A producer adds to {@code txn-commit-time-ns-total} when a call to commit has succeeded, and only then; and to
 * {@code txn-abort-time-ns-total} when one to abort has. A look compares both with the look before, whichever store has made
 * that. If it sees a commit and an abort, their order is not known: then records that may be aborted count as aborted.
 *
 * <p>Each store has its {@link Writes}. They begin at a write, and the first look that sees an end gives it to all that have begun
 * by then. A write without a record is in no transaction of its own, and waits for the first commit.
 *
 * <p>An abort that fails is not counted, but then the producer can commit no more. Another producer of the thread means that the
 * last transaction of the one before was not committed.
 *
 * <p>Concurrency: the thread that commits and aborts the transactions also makes the writes, and all looks. So an end that a look
 * sees comes after all writes that have begun. Other threads may close a store.
 */
final class ProducerWatch {
    /** How the transaction of writes has ended. */
    enum End {
        OPEN,
        COMMITTED,
        ABORTED
    }

    /** The writes of an open store that are not known to be committed. The watch guards it. */
    static final class Writes {
        private final String store;
        private final boolean hasRecords;
        private End end = End.OPEN;

        /** {@code hasRecords}: each write has sent a record in its transaction. */
        Writes(String store, boolean hasRecords) {
            this.store = store;
            this.hasRecords = hasRecords;
        }
    }

    private static final Logger LOG = LoggerFactory.getLogger(ProducerWatch.class);
    private static final String COMMITS = "txn-commit-time-ns-total";
    private static final String ABORTS = "txn-abort-time-ns-total";
    private static final Map<StreamsProducer, ProducerWatch> WATCHES = new WeakHashMap<>();
    /** The way to the producer; null if this Kafka has another one. */
    private static final Field STREAMS_PRODUCER = streamsProducerField();
    private static final MethodHandle KAFKA_PRODUCER = kafkaProducerMethod();

    /** Weak, because a watch may stay longer than its thread. */
    private WeakReference<Producer<?, ?>> producer;
    private Metric commits;
    private Metric aborts;
    /** What the metrics were at the last look. */
    private double committed;
    private double aborted;
    private final Set<Writes> open = new HashSet<>();
    /** Those that were aborted, although their stores are still open: Kafka has let the tasks live. */
    private final Set<Writes> lost = new LinkedHashSet<>();

    /** The producer of a thread; null if it cannot be reached. */
    static StreamsProducer threadProducer(RecordCollector collector) {
        if (!(collector instanceof RecordCollectorImpl) || STREAMS_PRODUCER == null || KAFKA_PRODUCER == null) {
            return null;
        }
        try {
            return (StreamsProducer) STREAMS_PRODUCER.get(collector);
        } catch (ReflectiveOperationException error) {
            return unreachable(error);
        }
    }

    /** That of a thread; null if its producer has no such metrics, as in Kafka's test driver. */
    static ProducerWatch of(StreamsProducer thread) {
        ProducerWatch watch;
        synchronized (WATCHES) {
            watch = WATCHES.computeIfAbsent(thread, it -> new ProducerWatch(kafkaProducer(it)));
        }
        return watch.hasMetrics() ? watch : null;
    }

    private ProducerWatch(Producer<?, ?> first) {
        attach(first);
    }

    private synchronized boolean hasMetrics() {
        return commits != null && aborts != null;
    }

    /** Looks at the producer that {@code thread} has now, and says how the writes have ended. */
    synchronized End look(StreamsProducer thread, Writes writes) {
        note();
        Producer<?, ?> now = kafkaProducer(thread);
        if (now != producer.get()) {
            attach(now);
            ended(false, true);
        }
        return writes.end;
    }

    /** The name of some store that has aborted writes, as of the last look; null if there is none. */
    synchronized String lostStore() {
        return lost.isEmpty() ? null : lost.iterator().next().store;
    }

    /** A write follows, after a look. */
    synchronized void begin(Writes writes) {
        writes.end = End.OPEN;
        open.add(writes);
    }

    /** Nobody knows what has become of the writes of the store. */
    synchronized void distrust(Writes writes) {
        if (writes.hasRecords) {
            writes.end = End.ABORTED;
            lost.add(writes);
        }
    }

    /** The store has committed its writes otherwise, or is closed. */
    synchronized void forget(Writes writes) {
        open.remove(writes);
        lost.remove(writes);
    }

    private void note() {
        double commitsNow = value(commits);
        double abortsNow = value(aborts);
        boolean isCommit = commitsNow > committed;
        boolean isAbort = abortsNow > aborted;
        committed = commitsNow;
        aborted = abortsNow;
        if (isCommit || isAbort) {
            ended(isCommit, isAbort);
        }
    }

    private void ended(boolean isCommit, boolean isAbort) {
        if (isCommit) {
            // It may have the offsets of their input.
            lost.forEach(it -> LOG.error(
                    "Updates of store {} since its last commit may be lost: Kafka has aborted their transaction, let the task live,"
                            + " and committed the next one before it asked a store of the thread", it.store));
        }
        for (Writes writes : List.copyOf(open)) {
            if (writes.hasRecords && isAbort) {
                writes.end = End.ABORTED;
                lost.add(writes);
                open.remove(writes);
                if (isCommit) {
                    LOG.warn("Kafka has committed and aborted transactions since the last writes of store {}, in an order that is not"
                            + " known; if the abort came first, its updates since its last commit are lost", writes.store);
                }
            } else if (isCommit) {
                writes.end = End.COMMITTED;
                open.remove(writes);
            }
        }
    }

    private void attach(Producer<?, ?> now) {
        producer = new WeakReference<>(now);
        commits = metric(now, COMMITS);
        aborts = metric(now, ABORTS);
        committed = value(commits);
        aborted = value(aborts);
    }

    private static double value(Metric metric) {
        return metric == null ? 0 : (double) metric.metricValue();
    }

    private static Metric metric(Producer<?, ?> producer, String name) {
        if (producer != null) {
            for (Map.Entry<MetricName, ? extends Metric> metric : producer.metrics().entrySet()) {
                if (metric.getKey().name().equals(name)) {
                    return metric.getValue();
                }
            }
        }
        return null;
    }

    private static Producer<?, ?> kafkaProducer(StreamsProducer thread) {
        try {
            return (Producer<?, ?>) KAFKA_PRODUCER.invoke(thread);
        } catch (Throwable error) {
            return unreachable(error);
        }
    }

    private static Field streamsProducerField() {
        try {
            Field field = RecordCollectorImpl.class.getDeclaredField("streamsProducer");
            field.setAccessible(true);
            return field;
        } catch (ReflectiveOperationException | RuntimeException | LinkageError error) {
            return unreachable(error);
        }
    }

    private static MethodHandle kafkaProducerMethod() {
        try {
            Method method = StreamsProducer.class.getDeclaredMethod("kafkaProducer");
            method.setAccessible(true);
            return MethodHandles.lookup().unreflect(method);
        } catch (ReflectiveOperationException | RuntimeException | LinkageError error) {
            return unreachable(error);
        }
    }

    private static <T> T unreachable(Throwable error) {
        LOG.warn("The producers of tasks cannot be watched: more is restored after a kill", error);
        return null;
    }
}
