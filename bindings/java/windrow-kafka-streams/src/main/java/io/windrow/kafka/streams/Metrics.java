package io.windrow.kafka.streams;

import org.apache.kafka.common.metrics.Sensor;
import org.apache.kafka.streams.processor.StateStoreContext;
import org.apache.kafka.streams.processor.internals.InternalProcessorContext;
import org.apache.kafka.streams.processor.internals.ProcessorContextUtils;
import org.apache.kafka.streams.processor.internals.metrics.TaskMetrics;

/** Kafka's metrics of a task. */
final class Metrics {
    private Metrics() {}

    /** The records that a task has dropped. */
    static Sensor droppedRecords(StateStoreContext context) {
        String task = context.taskId().toString();
        return TaskMetrics.droppedRecordsSensor(
                Thread.currentThread().getName(), task, ProcessorContextUtils.metricsImpl(context));
    }

    static long now(StateStoreContext context) {
        return ((InternalProcessorContext<?, ?>) context).currentSystemTimeMs();
    }
}
