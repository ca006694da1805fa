package io.windrow.kafka.streams;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import io.windrow.WindrowException;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;
import java.util.function.ToLongFunction;
import org.apache.kafka.common.MetricName;
import org.apache.kafka.common.metrics.Sensor.RecordingLevel;
import org.apache.kafka.streams.processor.StateStoreContext;
import org.apache.kafka.streams.processor.internals.ProcessorContextUtils;
import org.apache.kafka.streams.processor.internals.metrics.StreamsMetricsImpl;

/**
 * Metrics of a store beside those that Kafka keeps for all stores: under the names of Kafka's metrics of RocksDB where Windrow
 * has a counterpart, and all statistics of Windrow as JSON in one ({@code windrow-statistics}). Kafka reports them by JMX.
 *
 * <p>Concurrency: reporters ask from any thread. What they get is up to a second old.
 */
final class StoreMetrics implements AutoCloseable {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final JsonNode NONE = JSON.createObjectNode();
    private static final long AGE_MAX = TimeUnit.SECONDS.toNanos(1);

    private final StreamsMetricsImpl metrics;
    private final Supplier<String> statistics;
    private final List<MetricName> names = new ArrayList<>();
    private JsonNode last = NONE;
    private long lastAt = System.nanoTime() - AGE_MAX;

    /** {@code statistics} gives them as JSON, or null if there are no files. */
    StoreMetrics(StateStoreContext context, String scope, String store, long cacheBytes, Supplier<String> statistics) {
        this.metrics = ProcessorContextUtils.metricsImpl(context);
        this.statistics = statistics;
        Registration to = new Registration(context.taskId().toString(), scope, store);
        to.add("bytes-written-total", "bytes of keys and values that were written", it -> it.path("user_bytes").asLong());
        to.add("memtable-bytes-flushed-total", "bytes that flushes have written", it -> it.path("flush_bytes").asLong());
        to.add("write-stall-duration-total", "milliseconds for which writes had to wait", StoreMetrics::stalls);
        to.add("num-entries-active-mem-table", "entries in memtables", it -> sum(it, "memtable_entries"));
        to.add("num-deletes-active-mem-table", "deletes in memtables", it -> sum(it, "memtable_tombstones"));
        to.add("cur-size-active-mem-table", "bytes in memtables", it -> sum(it, "memtable_bytes"));
        to.add("size-all-mem-tables", "bytes of memory of all memtables", it -> it.path("memory").path("memtables").asLong());
        to.add("total-sst-files-size", "bytes of all tables", it -> levels(it, "bytes"));
        to.add("estimate-num-keys", "entries in tables and memtables", it -> levels(it, "entries") + sum(it, "memtable_entries"));
        to.add("estimate-table-readers-mem", "bytes of memory of open tables", it -> it.path("memory").path("tables").asLong());
        to.add("block-cache-usage", "bytes in the cache of blocks", it -> it.path("memory").path("block_cache").asLong());
        to.add("block-cache-capacity", "bytes that the cache of blocks may have", it -> cacheBytes);
        names.add(metrics.addStoreLevelMutableMetric(
                context.taskId().toString(), scope, store, "windrow-statistics", "all statistics of the database, as JSON",
                RecordingLevel.INFO, (configuration, now) -> read().toString()));
    }

    private final class Registration {
        private final String task;
        private final String scope;
        private final String store;

        Registration(String task, String scope, String store) {
            this.task = task;
            this.scope = scope;
            this.store = store;
        }

        void add(String name, String description, ToLongFunction<JsonNode> value) {
            names.add(metrics.addStoreLevelMutableMetric(
                    task, scope, store, name, description, RecordingLevel.INFO,
                    (configuration, now) -> value.applyAsLong(read())));
        }
    }

    private static long stalls(JsonNode statistics) {
        long micros = 0;
        for (JsonNode stall : statistics.path("stalls")) {
            micros += stall.path("micros").asLong();
        }
        return micros / 1000;
    }

    private static long sum(JsonNode statistics, String name) {
        long sum = 0;
        for (JsonNode keyspace : statistics.path("keyspaces")) {
            sum += keyspace.path(name).asLong();
        }
        return sum;
    }

    private static long levels(JsonNode statistics, String name) {
        long sum = 0;
        for (JsonNode keyspace : statistics.path("keyspaces")) {
            for (JsonNode level : keyspace.path("levels")) {
                sum += level.path(name).asLong();
            }
        }
        return sum;
    }

    private synchronized JsonNode read() {
        long now = System.nanoTime();
        if (now - lastAt >= AGE_MAX) {
            lastAt = now;
            try {
                String text = statistics.get();
                last = text == null ? NONE : JSON.readTree(text);
            } catch (WindrowException | JsonProcessingException closed) {
                last = NONE;
            }
        }
        return last;
    }

    /** The store was closed. */
    @Override
    public void close() {
        names.forEach(metrics::removeStoreLevelMetric);
    }
}
