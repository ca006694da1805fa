package io.windrow.kafka.streams.endtoend;

import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.time.Duration;
import java.util.Arrays;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicLong;
import java.util.stream.Collectors;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.producer.ProducerConfig;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse;
import org.apache.kafka.streams.processor.StateRestoreListener;
import org.slf4j.LoggerFactory;

/**
 * An application that processes exactly once, with one of the {@link Topologies}. It says when it changes its state and what it
 * has restored by then. It runs until it is killed, or ends cleanly when its input ends. A line of its input makes one of its
 * threads wait in the middle of a transaction ({@link Pause}), and the next one lets it go on.
 */
public final class Application {
    /** A broker aborts a transaction that lasts so long. */
    private static final Duration TRANSACTION_MAX = Duration.ofSeconds(10);

    private Application() {}

    static Arguments arguments(String... given) {
        return new Arguments(
                given, "broker=", "id=", "state=", "stores=", "topology=all", "copies=1", "threads=2", "standbys=0", "member=",
                "persist=10000", "timeout=10000");
    }

    public static void main(String[] given) throws Exception {
        Arguments arguments = arguments(given);
        // Who reads the log for warnings sees that it has them.
        LoggerFactory.getLogger(Application.class).warn("begins");
        Properties properties = properties(arguments);
        KafkaStreams streams = new KafkaStreams(
                Topologies.of(arguments.text("topology"), arguments.number("copies"), properties), properties);
        RestoreCounts restores = new RestoreCounts();
        streams.setGlobalStateRestoreListener(restores);
        streams.setUncaughtExceptionHandler(error -> {
            error.printStackTrace();
            return StreamThreadExceptionResponse.SHUTDOWN_CLIENT;
        });
        streams.setStateListener((now, before) -> System.out.println("state " + now + " " + restores));
        streams.start();
        boolean pauses = false;
        while (System.in.read() >= 0) {
            pauses = !pauses;
            if (pauses) {
                Pause.request(() -> tasks(streams));
            } else {
                Pause.end();
            }
        }
        System.out.println("ends " + restores);
        streams.close(Duration.ofSeconds(60));
    }

    /** Of each thread its name and its active tasks. */
    private static String tasks(KafkaStreams streams) {
        return streams.metadataForLocalThreads().stream()
                .map(it -> it.threadName() + "=" + it.activeTasks().stream()
                        .map(task -> task.taskId().toString()).collect(Collectors.joining(",")))
                .collect(Collectors.joining(" "));
    }

    private static Properties properties(Arguments arguments) {
        Properties properties = new Properties();
        properties.put(StreamsConfig.APPLICATION_ID_CONFIG, arguments.text("id"));
        properties.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, arguments.text("broker"));
        properties.put(StreamsConfig.STATE_DIR_CONFIG, arguments.text("state"));
        properties.put(StreamsConfig.DSL_STORE_SUPPLIERS_CLASS_CONFIG, arguments.text("stores"));
        properties.put("windrow.persist.interval.ms", arguments.number("persist"));
        properties.put(StreamsConfig.PROCESSING_GUARANTEE_CONFIG, StreamsConfig.EXACTLY_ONCE_V2);
        properties.put(StreamsConfig.DEFAULT_KEY_SERDE_CLASS_CONFIG, Serdes.StringSerde.class);
        properties.put(StreamsConfig.DEFAULT_VALUE_SERDE_CLASS_CONFIG, Serdes.StringSerde.class);
        properties.put(StreamsConfig.TOPOLOGY_OPTIMIZATION_CONFIG, StreamsConfig.REUSE_KTABLE_SOURCE_TOPICS);
        properties.put(StreamsConfig.NUM_STREAM_THREADS_CONFIG, arguments.number("threads"));
        properties.put(StreamsConfig.NUM_STANDBY_REPLICAS_CONFIG, arguments.number("standbys"));
        properties.put(StreamsConfig.STATE_CLEANUP_DELAY_MS_CONFIG, Duration.ofDays(1).toMillis());
        properties.put(StreamsConfig.PROBING_REBALANCE_INTERVAL_MS_CONFIG, 60_000);
        properties.put(StreamsConfig.STATESTORE_CACHE_MAX_BYTES_CONFIG, 100_000);
        properties.put(
                StreamsConfig.producerPrefix(ProducerConfig.TRANSACTION_TIMEOUT_CONFIG), (int) TRANSACTION_MAX.toMillis());
        properties.put(StreamsConfig.consumerPrefix(ConsumerConfig.AUTO_OFFSET_RESET_CONFIG), "earliest");
        properties.put(StreamsConfig.consumerPrefix(ConsumerConfig.SESSION_TIMEOUT_MS_CONFIG), arguments.number("timeout"));
        properties.put(StreamsConfig.consumerPrefix(ConsumerConfig.HEARTBEAT_INTERVAL_MS_CONFIG), 500);
        if (!arguments.text("member").isEmpty()) {
            properties.put(StreamsConfig.consumerPrefix(ConsumerConfig.GROUP_INSTANCE_ID_CONFIG), arguments.text("member"));
        }
        return properties;
    }

    /** How many records were restored so far, and in what time. */
    private static final class RestoreCounts implements StateRestoreListener {
        private final AtomicLong records = new AtomicLong();
        private final Map<TopicPartition, Long> running = new ConcurrentHashMap<>();
        private volatile long began;
        private volatile long ended;

        @Override
        public void onRestoreStart(TopicPartition changelog, String store, long first, long end) {
            if (began == 0) {
                began = System.nanoTime();
                ended = began;
            }
            running.put(changelog, first);
        }

        @Override
        public void onBatchRestored(TopicPartition changelog, String store, long last, long count) {
            records.addAndGet(count);
        }

        @Override
        public void onRestoreEnd(TopicPartition changelog, String store, long total) {
            ended = System.nanoTime();
            running.remove(changelog);
        }

        @Override
        public String toString() {
            return "restored " + records + " in " + (ended - began) / 1_000_000 + " ms with " + cpu() / 1_000_000
                    + " ms of processors";
        }

        /** The time of processors of the threads that restore, in nanoseconds. */
        private static long cpu() {
            ThreadMXBean threads = ManagementFactory.getThreadMXBean();
            return Arrays.stream(threads.getThreadInfo(threads.getAllThreadIds()))
                    .filter(it -> it != null && it.getThreadName().contains("StateUpdater"))
                    .mapToLong(it -> threads.getThreadCpuTime(it.getThreadId())).sum();
        }
    }
}
