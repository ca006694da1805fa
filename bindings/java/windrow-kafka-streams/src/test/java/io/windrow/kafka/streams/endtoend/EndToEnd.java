package io.windrow.kafka.streams.endtoend;

import io.windrow.kafka.streams.WindrowStoreSuppliers;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * Runs the application against a broker, kills it while it restores and while it works, ends it cleanly, and compares what it
 * has written with a plain computation over the same events.
 */
public final class EndToEnd {
    private static final int PARTITIONS = 2;
    private static final int EVENTS_OF_A_ROUND = 3_000;

    private final Random random;
    private final Path folder;
    private final Broker broker;
    private final Expected expected = new Expected();
    /** Brokers remove what is old. */
    private long time = System.currentTimeMillis();

    private EndToEnd(Path folder, long seed, int port) throws IOException, InterruptedException {
        this.folder = folder;
        this.random = new Random(seed);
        this.broker = new Broker(folder.resolve("broker"), port);
    }

    /** Its arguments: a folder that does not exist, a seed, how often the application is killed, and a port. */
    public static void main(String[] arguments) throws Exception {
        Path folder = Path.of(arguments[0]);
        EndToEnd run = new EndToEnd(folder, Long.parseLong(arguments[1]), Integer.parseInt(arguments[3]));
        try {
            run.run(Integer.parseInt(arguments[2]));
        } finally {
            run.broker.close();
        }
    }

    private void run(int kills) throws Exception {
        createTopics();
        for (int kill = 1; kill <= kills; kill++) {
            produce();
            try (Running application = new Running()) {
                // Sometimes before it runs, that is while it restores.
                if (random.nextInt(3) > 0) {
                    application.await("state RUNNING");
                }
                Thread.sleep(random.nextInt(3_000));
                application.kill();
            }
        }
        produce();
        try (Running application = new Running()) {
            awaitEnd();
            application.end();
            System.out.println("after the last kill: " + application.await("restored "));
        }
        // More events, so that it is known when each task works.
        produce();
        try (Running application = new Running()) {
            awaitEnd();
            application.end();
            String restored = application.await("restored ");
            System.out.println("after a clean end: " + restored);
            check(restored.equals("restored 0"), "a clean restart restores nothing");
        }
        compare(Application.COUNTS, expected.counts());
        compare(Application.WINDOWS, expected.windows());
        compare(Application.SESSIONS, expected.sessions());
        compare(Application.JOINED, expected.joined());
        String log = Files.readString(errors());
        check(!log.contains("TaskCorruptedException"), "no task was wiped");
        System.out.println("passed: " + kills + " kills, " + expected.size() + " events");
    }

    private void createTopics() throws Exception {
        List<String> names = List.of(
                Application.EVENTS, Application.COUNTS, Application.WINDOWS, Application.SESSIONS, Application.JOINED);
        try (Admin admin = admin()) {
            admin.createTopics(names.stream().map(name -> new NewTopic(name, PARTITIONS, (short) 1)).toList()).all().get();
        }
    }

    private Admin admin() {
        return Admin.create(Map.of("bootstrap.servers", broker.address()));
    }

    private void produce() {
        Map<String, Object> settings = Map.of("bootstrap.servers", broker.address());
        try (var producer = new KafkaProducer<>(settings, new StringSerializer(), new StringSerializer())) {
            for (int i = 0; i < EVENTS_OF_A_ROUND; i++) {
                time += random.nextInt(20);
                long at = time - random.nextInt(20_000);
                String key = "key " + random.nextInt(200);
                String value = "event " + expected.size();
                expected.add(key, value, at);
                producer.send(new ProducerRecord<>(Application.EVENTS, null, at, key, value));
            }
        }
    }

    /** Waits until the application has committed all events. */
    private void awaitEnd() throws Exception {
        long deadline = System.nanoTime() + TimeUnit.MINUTES.toNanos(3);
        try (Admin admin = admin()) {
            while (true) {
                var committed = admin.listConsumerGroupOffsets(Application.ID).partitionsToOffsetAndMetadata().get();
                Set<TopicPartition> events = committed.keySet().stream()
                        .filter(it -> it.topic().equals(Application.EVENTS)).collect(Collectors.toSet());
                if (events.size() == PARTITIONS) {
                    var ends = admin.listOffsets(events.stream().collect(
                            Collectors.toMap(it -> it, it -> OffsetSpec.latest()))).all().get();
                    if (events.stream().allMatch(it -> committed.get(it).offset() >= ends.get(it).offset())) {
                        return;
                    }
                }
                check(System.nanoTime() < deadline, "the application comes to the end of its events: " + committed);
                Thread.sleep(200);
            }
        }
    }

    /** Compares the last value of each key with what is expected. */
    private void compare(String topic, Map<String, String> expected) {
        Map<String, String> found = new TreeMap<>();
        Map<String, Object> settings = Map.of("bootstrap.servers", broker.address(), "isolation.level", "read_committed");
        try (var consumer = new KafkaConsumer<>(settings, new StringDeserializer(), new StringDeserializer())) {
            List<TopicPartition> partitions = consumer.partitionsFor(topic).stream()
                    .map(it -> new TopicPartition(topic, it.partition())).toList();
            consumer.assign(partitions);
            consumer.seekToBeginning(partitions);
            Map<TopicPartition, Long> ends = consumer.endOffsets(partitions);
            while (partitions.stream().anyMatch(it -> consumer.position(it) < ends.get(it))) {
                for (ConsumerRecord<String, String> record : consumer.poll(Duration.ofMillis(200))) {
                    if (record.value() == null) {
                        found.remove(record.key());
                    } else {
                        found.put(record.key(), record.value());
                    }
                }
            }
        }
        Map<String, String> wrong = new HashMap<>();
        expected.forEach((key, value) -> {
            if (!value.equals(found.get(key))) {
                wrong.put(key, value + ", but was " + found.get(key));
            }
        });
        found.keySet().stream().filter(key -> !expected.containsKey(key)).forEach(key -> wrong.put(key, "not expected"));
        check(wrong.isEmpty(), topic + " has the results of a plain computation: " + wrong.size() + " differ, " + wrong);
        System.out.println(topic + ": " + found.size() + " results are equal");
    }

    private static void check(boolean holds, String what) {
        if (!holds) {
            throw new AssertionError("it does not hold that " + what);
        }
    }

    private Path errors() {
        return folder.resolve("application.log");
    }

    /** The application in a process of its own. */
    private final class Running implements AutoCloseable {
        private final Process process = start();
        private final BlockingQueue<String> lines = new LinkedBlockingQueue<>();

        Running() {
            Thread reader = new Thread(() -> {
                try (var output = new BufferedReader(new InputStreamReader(process.getInputStream()))) {
                    output.lines().forEach(lines::add);
                } catch (IOException | UncheckedIOException ended) {
                    lines.add("end of the output");
                }
            });
            reader.setDaemon(true);
            reader.start();
        }

        private Process start() {
            try {
                return Processes.javaWithOutput(
                        errors(), "256m", Application.class.getName(), broker.address(),
                        folder.resolve("state").toString(), WindrowStoreSuppliers.class.getName());
            } catch (IOException error) {
                throw new UncheckedIOException(error);
            }
        }

        /** The next line that begins so. */
        String await(String beginning) throws InterruptedException {
            while (true) {
                String line = lines.poll(3, TimeUnit.MINUTES);
                check(line != null, "the application says \"" + beginning + "\" in time");
                if (line.startsWith(beginning)) {
                    return line;
                }
                check(!line.equals("state ERROR"), "the application runs");
            }
        }

        void kill() throws InterruptedException {
            process.toHandle().destroyForcibly();
            process.waitFor();
        }

        void end() throws IOException, InterruptedException {
            process.getOutputStream().close();
            check(process.waitFor(2, TimeUnit.MINUTES), "the application ends");
        }

        @Override
        public void close() {
            process.toHandle().destroyForcibly();
        }
    }
}
