package io.windrow.kafka.streams;

import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.util.Map;
import java.util.TreeMap;
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
 * Numbers the ends of the transactions of a thread, for all stores of its tasks: they share a producer.
 *
 * <p>A producer adds to {@code txn-commit-time-ns-total} when a call to commit has succeeded, and only then; and to
 * {@code txn-abort-time-ns-total} when one to abort has. A look compares both with the look before, whichever store has made
 * that, and gives what has happened the next number. It reads the commits first. So a commit that it sees without an abort
 * comes after no abort that it does not see. If it sees both, their order is not known.
 *
 * <p>A number is never used up: each store asks for the first end after the number that it has written at.
 *
 * <p>An abort that fails is not counted, but then the producer can commit no more. Another producer of the thread means that the
 * last transaction of the one before was not committed.
 *
 * <p>Concurrency: any thread looks; the thread that commits the transactions also makes the writes.
 */
final class ProducerWatch {
    /** How a transaction has ended. {@code EITHER}: there were commits and aborts in an order that is not known. */
    enum End {
        OPEN,
        COMMITTED,
        ABORTED,
        EITHER
    }

    private static final Logger LOG = LoggerFactory.getLogger(ProducerWatch.class);
    private static final String COMMITS = "txn-commit-time-ns-total";
    private static final String ABORTS = "txn-abort-time-ns-total";
    private static final Map<StreamsProducer, ProducerWatch> WATCHES = new WeakHashMap<>();
    /** The way to the producer; null if this Kafka has another one. */
    private static final Field STREAMS_PRODUCER = streamsProducerField();
    private static final MethodHandle KAFKA_PRODUCER = kafkaProducerMethod();

    private Producer<?, ?> producer;
    private Metric commits;
    private Metric aborts;
    /** What the metrics were at the last look. */
    private double committed;
    private double aborted;
    /** The number of the last end that was seen. */
    private long last;
    private long lastCommit;
    /** The ends that are no commits: there are few. */
    private final TreeMap<Long, End> failures = new TreeMap<>();

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
        synchronized (WATCHES) {
            ProducerWatch watch = WATCHES.computeIfAbsent(thread, it -> new ProducerWatch(kafkaProducer(it)));
            return watch.commits == null || watch.aborts == null ? null : watch;
        }
    }

    private ProducerWatch(Producer<?, ?> first) {
        attach(first);
    }

    /** Looks at the producer that {@code thread} has now. Returns the number of the last end so far. */
    synchronized long look(StreamsProducer thread) {
        note();
        Producer<?, ?> now = kafkaProducer(thread);
        if (now != producer) {
            attach(now);
            ended(End.ABORTED);
        }
        return last;
    }

    /** How the transaction has ended that was open at the look that gave this number. */
    synchronized End endAfter(long number) {
        return number == last ? End.OPEN : failures.getOrDefault(number + 1, End.COMMITTED);
    }

    /** Whether some transaction was committed after the look that gave this number. */
    synchronized boolean hasCommitAfter(long number) {
        return lastCommit > number;
    }

    private void note() {
        double commitsNow = value(commits);
        double abortsNow = value(aborts);
        boolean isCommit = commitsNow > committed;
        boolean isAbort = abortsNow > aborted;
        committed = commitsNow;
        aborted = abortsNow;
        if (isCommit || isAbort) {
            ended(!isAbort ? End.COMMITTED : isCommit ? End.EITHER : End.ABORTED);
        }
    }

    private void ended(End end) {
        last++;
        if (end != End.COMMITTED) {
            failures.put(last, end);
        }
        if (end != End.ABORTED) {
            lastCommit = last;
        }
    }

    private void attach(Producer<?, ?> now) {
        producer = now;
        commits = metric(COMMITS);
        aborts = metric(ABORTS);
        committed = value(commits);
        aborted = value(aborts);
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
