package io.windrow.kafka.streams;

import static io.windrow.kafka.streams.Contexts.key;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Path;
import java.util.Map;
import java.util.TreeMap;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.test.InternalMockProcessorContext;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Metrics under the names of Kafka, which its reporters take to JMX. */
class MetricsTest {
    @TempDir
    Path folder;

    private static Map<String, Object> metrics(InternalMockProcessorContext<Object, Object> context) {
        Map<String, Object> found = new TreeMap<>();
        context.metrics().metrics().forEach((name, metric) -> {
            if (name.group().equals("stream-state-metrics") && "counts".equals(name.tags().get("windrow-state-id"))) {
                found.put(name.name(), metric.metricValue());
            }
        });
        return found;
    }

    @Test
    void aStoreHasMetricsWhileItIsOpen() throws InterruptedException {
        InternalMockProcessorContext<Object, Object> context = Contexts.in(folder.toFile());
        KeyValueStore<Bytes, byte[]> store = WindrowStores.keyValueStore("counts").get();
        store.init(context, store);
        assertEquals(0L, metrics(context).get("estimate-num-keys"), "a store without files has zeros");
        for (int i = 0; i < 100; i++) {
            store.put(key("key " + i), new byte[1000]);
        }
        // They are up to a second old.
        Map<String, Object> found = metrics(context);
        while ((long) found.get("bytes-written-total") < 100_000) {
            Thread.sleep(100);
            found = metrics(context);
        }
        // The others may have been read before.
        found = metrics(context);
        assertTrue((long) found.get("num-entries-active-mem-table") >= 100);
        assertTrue((long) found.get("size-all-mem-tables") >= 100_000);
        assertEquals(2L << 20, found.get("block-cache-capacity"));
        assertTrue(found.get("windrow-statistics").toString().contains("\"user_writes\":"));
        store.close();
        assertEquals(Map.of(), metrics(context));
    }
}
