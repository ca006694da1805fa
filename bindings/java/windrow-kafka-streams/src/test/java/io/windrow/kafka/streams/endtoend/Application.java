package io.windrow.kafka.streams.endtoend;

import java.time.Duration;
import java.util.Properties;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse;
import org.apache.kafka.streams.kstream.KGroupedStream;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.KTable;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.SessionWindows;
import org.apache.kafka.streams.kstream.TimeWindows;
import org.apache.kafka.streams.processor.StateRestoreListener;

/**
 * An application that processes exactly once: it counts events by key, by window and by session, and joins a table of the last
 * events with that of the counts. It runs until it is killed, or ends cleanly when its input ends.
 */
public final class Application {
    static final String ID = "end-to-end";
    static final String EVENTS = "events";
    static final String COUNTS = "counts";
    static final String WINDOWS = "windows";
    static final String SESSIONS = "sessions";
    static final String JOINED = "joined";
    static final Duration WINDOW = Duration.ofSeconds(10);
    static final Duration GAP = Duration.ofSeconds(5);
    private static final Duration GRACE = Duration.ofMinutes(1);

    private Application() {}

    /** Its arguments: the broker, the folder of its state, and the class of the stores. */
    public static void main(String[] arguments) throws Exception {
        Properties properties = new Properties();
        properties.put(StreamsConfig.APPLICATION_ID_CONFIG, ID);
        properties.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, arguments[0]);
        properties.put(StreamsConfig.STATE_DIR_CONFIG, arguments[1]);
        properties.put(StreamsConfig.DSL_STORE_SUPPLIERS_CLASS_CONFIG, arguments[2]);
        properties.put(StreamsConfig.PROCESSING_GUARANTEE_CONFIG, StreamsConfig.EXACTLY_ONCE_V2);
        properties.put(StreamsConfig.DEFAULT_KEY_SERDE_CLASS_CONFIG, Serdes.StringSerde.class);
        properties.put(StreamsConfig.DEFAULT_VALUE_SERDE_CLASS_CONFIG, Serdes.StringSerde.class);
        properties.put(StreamsConfig.NUM_STREAM_THREADS_CONFIG, 2);
        properties.put(StreamsConfig.STATESTORE_CACHE_MAX_BYTES_CONFIG, 100_000);
        properties.put(StreamsConfig.consumerPrefix(ConsumerConfig.AUTO_OFFSET_RESET_CONFIG), "earliest");
        properties.put(StreamsConfig.consumerPrefix(ConsumerConfig.SESSION_TIMEOUT_MS_CONFIG), 2_000);
        properties.put(StreamsConfig.consumerPrefix(ConsumerConfig.HEARTBEAT_INTERVAL_MS_CONFIG), 500);

        KafkaStreams streams = new KafkaStreams(topology(), properties);
        AtomicLong restored = new AtomicLong();
        streams.setGlobalStateRestoreListener(new Restores(restored));
        streams.setUncaughtExceptionHandler(error -> {
            error.printStackTrace();
            return StreamThreadExceptionResponse.SHUTDOWN_CLIENT;
        });
        streams.setStateListener((now, before) -> System.out.println("state " + now));
        streams.start();
        while (System.in.read() >= 0) {
            // The end of the input is that of the application.
        }
        System.out.println("restored " + restored.get());
        streams.close(Duration.ofSeconds(60));
    }

    private record Restores(AtomicLong restored) implements StateRestoreListener {
        @Override
        public void onRestoreStart(TopicPartition changelog, String store, long first, long end) {}

        @Override
        public void onBatchRestored(TopicPartition changelog, String store, long last, long count) {
            restored.addAndGet(count);
        }

        @Override
        public void onRestoreEnd(TopicPartition changelog, String store, long total) {}
    }

    private static Topology topology() {
        StreamsBuilder builder = new StreamsBuilder();
        KStream<String, String> events = builder.stream(EVENTS);
        KGroupedStream<String, String> groups = events.groupByKey();
        KTable<String, Long> counts = groups.count(Materialized.as("counts-store"));
        counts.toStream().mapValues(String::valueOf).to(COUNTS);
        groups.windowedBy(TimeWindows.ofSizeAndGrace(WINDOW, GRACE)).count(Materialized.as("windows-store")).toStream()
                .map((key, count) -> org.apache.kafka.streams.KeyValue.pair(
                        key.key() + "@" + key.window().start(), String.valueOf(count)))
                .to(WINDOWS);
        groups.windowedBy(SessionWindows.ofInactivityGapAndGrace(GAP, GRACE)).count(Materialized.as("sessions-store")).toStream()
                .map((key, count) -> org.apache.kafka.streams.KeyValue.pair(
                        key.key() + "@" + key.window().start() + "-" + key.window().end(),
                        count == null ? null : String.valueOf(count)))
                .to(SESSIONS);
        KTable<String, String> last = events.toTable(Materialized.as("last-store"));
        last.join(counts, (value, count) -> value + " of " + count, Materialized.as("joined-store")).toStream().to(JOINED);
        return builder.build();
    }
}
