package io.windrow.kafka.streams;

import java.util.Map;
import org.apache.kafka.clients.producer.MockProducer;
import org.apache.kafka.common.Metric;
import org.apache.kafka.common.MetricName;

/** A metric of a producer that adds up times. */
final class Count implements Metric {
    private final MetricName name;
    private double value;

    private Count(String name) {
        this.name = new MetricName(name, "producer-metrics", "", Map.of());
    }

    /** That of the calls to commit of a producer that have succeeded. */
    static Count commits(MockProducer<?, ?> producer) {
        return of(producer, "txn-commit-time-ns-total");
    }

    /** That of the calls to abort of a producer that have succeeded. */
    static Count aborts(MockProducer<?, ?> producer) {
        return of(producer, "txn-abort-time-ns-total");
    }

    private static Count of(MockProducer<?, ?> producer, String name) {
        Count count = new Count(name);
        producer.setMockMetrics(count.name, count);
        return count;
    }

    /** Another call has succeeded. */
    void record() {
        value += 1_000;
    }

    @Override
    public MetricName metricName() {
        return name;
    }

    @Override
    public Object metricValue() {
        return value;
    }
}
