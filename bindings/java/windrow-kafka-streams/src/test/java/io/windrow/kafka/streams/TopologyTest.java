package io.windrow.kafka.streams;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;

import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.Properties;
import java.util.Random;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.TopologyTestDriver;
import org.apache.kafka.streams.kstream.EmitStrategy;
import org.apache.kafka.streams.kstream.JoinWindows;
import org.apache.kafka.streams.kstream.KGroupedStream;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.KTable;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.SessionWindows;
import org.apache.kafka.streams.kstream.SlidingWindows;
import org.apache.kafka.streams.kstream.TimeWindows;
import org.apache.kafka.streams.kstream.Windowed;
import org.apache.kafka.streams.state.BuiltInDslStoreSuppliers;
import org.apache.kafka.streams.state.DslStoreSuppliers;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** An application gives the same results with Windrow's stores as with Kafka's: counts, windows, sessions and joins. */
class TopologyTest {
    @TempDir
    Path folder;

    private Duration grace;
    /** Null for Kafka's default. */
    private Integer cache;

    @ParameterizedTest
    @CsvSource({"default,1,20,", "headers,2,20,", "default,3,0,0", "default,4,60,0", "default,5,120,0"})
    void anApplicationHasTheSameResults(String format, long seed, int grace, Integer cache) {
        this.grace = Duration.ofSeconds(grace);
        this.cache = cache;
        List<String> expected = results(BuiltInDslStoreSuppliers.RocksDBDslStoreSuppliers.class, format, seed);
        assertFalse(expected.isEmpty());
        List<String> found = results(WindrowStoreSuppliers.class, format, seed);
        if (cache == null) {
            // Kafka's cache for its own stores by time has another order of windows that close together.
            expected.sort(null);
            found.sort(null);
        }
        assertEquals(expected, found);
    }

    private List<String> results(Class<? extends DslStoreSuppliers> suppliers, String format, long seed) {
        Properties properties = new Properties();
        properties.put(StreamsConfig.APPLICATION_ID_CONFIG, "topology");
        properties.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, "nowhere:1");
        properties.put(StreamsConfig.STATE_DIR_CONFIG, folder.resolve(suppliers.getSimpleName()).toString());
        properties.put(StreamsConfig.DEFAULT_KEY_SERDE_CLASS_CONFIG, Serdes.StringSerde.class);
        properties.put(StreamsConfig.DEFAULT_VALUE_SERDE_CLASS_CONFIG, Serdes.StringSerde.class);
        properties.put(StreamsConfig.DSL_STORE_SUPPLIERS_CLASS_CONFIG, suppliers);
        properties.put(StreamsConfig.DSL_STORE_FORMAT_CONFIG, format);
        if (cache != null) {
            properties.put(StreamsConfig.STATESTORE_CACHE_MAX_BYTES_CONFIG, cache);
        }
        Random random = new Random(seed);
        List<String> results = new ArrayList<>();
        try (TopologyTestDriver driver = new TopologyTestDriver(topology(properties), properties, Instant.EPOCH)) {
            var left = driver.createInputTopic("left", new StringSerializer(), new StringSerializer());
            var right = driver.createInputTopic("right", new StringSerializer(), new StringSerializer());
            var output = driver.createOutputTopic("output", new StringDeserializer(), new StringDeserializer());
            long time = 0;
            for (int i = 0; i < 120; i++) {
                time += random.nextInt(8_000);
                long at = Math.max(0, time - random.nextInt(30_000));
                String key = "key " + random.nextInt(10);
                String value = random.nextInt(20) == 0 ? null : "key " + random.nextInt(10);
                (random.nextBoolean() ? left : right).pipeInput(key, value, at);
            }
            for (KeyValue<String, String> result : output.readKeyValuesToList()) {
                results.add(result.key + " -> " + result.value);
            }
        }
        return results;
    }

    private Topology topology(Properties properties) {
        StreamsBuilder builder = new StreamsBuilder(new org.apache.kafka.streams.TopologyConfig(new StreamsConfig(properties)));
        KStream<String, String> left = builder.stream("left");
        KStream<String, String> right = builder.stream("right");
        KTable<String, String> leftTable = left.toTable(Materialized.as("left-table"));
        KTable<String, String> rightTable = right.toTable(Materialized.as("right-table"));
        KGroupedStream<String, String> groups = left.filter((key, value) -> value != null).groupByKey();
        Duration minute = Duration.ofMinutes(1);
        Duration gap = Duration.ofSeconds(20);
        to("count", groups.count().toStream());
        windowed("tumbling", groups.windowedBy(TimeWindows.ofSizeAndGrace(minute, grace)).count().toStream());
        windowed("hopping", groups.windowedBy(
                TimeWindows.ofSizeAndGrace(minute, grace).advanceBy(Duration.ofSeconds(15))).count().toStream());
        windowed("closed", groups.windowedBy(TimeWindows.ofSizeAndGrace(minute, grace))
                .emitStrategy(EmitStrategy.onWindowClose()).count().toStream());
        windowed("closed hopping", groups.windowedBy(
                TimeWindows.ofSizeAndGrace(minute, grace).advanceBy(Duration.ofSeconds(15)))
                .emitStrategy(EmitStrategy.onWindowClose()).count().toStream());
        windowed("sliding", groups.windowedBy(SlidingWindows.ofTimeDifferenceAndGrace(minute, grace)).count().toStream());
        windowed("session", groups.windowedBy(SessionWindows.ofInactivityGapAndGrace(gap, grace)).count().toStream());
        windowed("closed session", groups.windowedBy(SessionWindows.ofInactivityGapAndGrace(gap, grace))
                .emitStrategy(EmitStrategy.onWindowClose()).count().toStream());
        to("join", leftTable.outerJoin(rightTable, (one, two) -> one + " and " + two).toStream());
        to("foreign", leftTable.leftJoin(rightTable, value -> value, (one, two) -> one + " of " + two).toStream());
        to("streams", left.outerJoin(right, (one, two) -> one + " with " + two, JoinWindows.ofTimeDifferenceAndGrace(gap, grace)));
        return builder.build(properties);
    }

    private static <V> void to(String name, KStream<String, V> results) {
        results.map((key, value) -> KeyValue.pair(name + " " + key, String.valueOf(value))).to("output");
    }

    private static <V> void windowed(String name, KStream<Windowed<String>, V> results) {
        results.map((key, value) -> KeyValue.pair(name + " " + key, String.valueOf(value))).to("output");
    }
}
