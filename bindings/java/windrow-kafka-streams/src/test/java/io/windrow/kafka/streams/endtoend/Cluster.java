package io.windrow.kafka.streams.endtoend;

import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Consumer;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.Config;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.config.TopicConfig;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.Deserializer;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/** A broker, and what the programs do with it. */
final class Cluster implements AutoCloseable {
    private static final Duration PATIENCE = Duration.ofMinutes(1);
    private static final String COMMITTED = "read_committed";

    private final Broker broker;
    private final int partitions;

    Cluster(Path folder, int port, int partitions) throws IOException, InterruptedException {
        this.broker = new Broker(folder, port);
        this.partitions = partitions;
    }

    String address() {
        return broker.address();
    }

    void createTopics(List<String> names) throws Exception {
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", address()))) {
            admin.createTopics(names.stream().map(name -> new NewTopic(name, partitions, (short) 1)).toList()).all().get();
        }
    }

    KafkaProducer<String, String> producer() {
        return new KafkaProducer<>(Map.of("bootstrap.servers", address()), new StringSerializer(), new StringSerializer());
    }

    /** Waits until an application has committed all records of a topic that it reads. */
    void awaitEnd(String application, String topic, Duration patience) throws Exception {
        long deadline = System.nanoTime() + patience.toNanos();
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", address()))) {
            while (true) {
                var committed = admin.listConsumerGroupOffsets(application).partitionsToOffsetAndMetadata().get();
                Set<TopicPartition> read = committed.keySet().stream()
                        .filter(it -> it.topic().equals(topic)).collect(Collectors.toSet());
                if (read.size() == partitions) {
                    var ends = admin.listOffsets(read.stream().collect(
                            Collectors.toMap(it -> it, it -> OffsetSpec.latest()))).all().get();
                    if (read.stream().allMatch(it -> committed.get(it).offset() >= ends.get(it).offset())) {
                        return;
                    }
                }
                if (System.nanoTime() > deadline) {
                    throw new AssertionError("the application does not come to the end of " + topic + ": " + committed);
                }
                TimeUnit.MILLISECONDS.sleep(100);
            }
        }
    }

    /** All committed records of a topic. */
    List<ConsumerRecord<String, String>> read(String topic) {
        List<ConsumerRecord<String, String>> records = new ArrayList<>();
        read(List.of(topic), Map.of(), records::add);
        return records;
    }

    /** All committed records of a partition up to now. Waits until it is known how the transaction of {@code offset} has ended. */
    List<ConsumerRecord<byte[], byte[]>> committed(TopicPartition partition, long offset) throws InterruptedException {
        List<ConsumerRecord<byte[], byte[]>> records = new ArrayList<>();
        long deadline = System.nanoTime() + PATIENCE.toNanos();
        try (var consumer = consumer(new ByteArrayDeserializer(), COMMITTED)) {
            List<TopicPartition> all = List.of(partition);
            // The end is the begin of the first transaction that is open.
            while (consumer.endOffsets(all).get(partition) <= offset) {
                if (System.nanoTime() > deadline) {
                    throw new AssertionError("offset " + offset + " of " + partition + " is in no transaction that has ended");
                }
                TimeUnit.MILLISECONDS.sleep(100);
            }
            read(consumer, all, Map.of(), records::add);
        }
        return records;
    }

    /** For how long the stores of a changelog keep what they have, in milliseconds: Kafka adds a day for the topic. */
    long retention(String topic) throws Exception {
        ConfigResource resource = new ConfigResource(ConfigResource.Type.TOPIC, topic);
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", address()))) {
            Config found = admin.describeConfigs(List.of(resource)).all().get().get(resource);
            long lag = Long.parseLong(found.get(TopicConfig.MIN_COMPACTION_LAG_MS_CONFIG).value());
            // Versions have a lag in place of a retention.
            long milliseconds = lag > 0 ? lag : Long.parseLong(found.get(TopicConfig.RETENTION_MS_CONFIG).value());
            return milliseconds - Duration.ofDays(1).toMillis();
        }
    }

    /** Waits until records from these offsets on were aborted. Returns how many. */
    int awaitAborted(Map<TopicPartition, Long> from) throws InterruptedException {
        long deadline = System.nanoTime() + PATIENCE.toNanos();
        int aborted = aborted(from);
        while (aborted == 0) {
            if (System.nanoTime() > deadline) {
                throw new AssertionError("the broker aborts no writes of stores");
            }
            TimeUnit.MILLISECONDS.sleep(100);
            aborted = aborted(from);
        }
        return aborted;
    }

    /** How many records from these offsets on were aborted, before the first transaction that is open. */
    private int aborted(Map<TopicPartition, Long> from) {
        List<TopicPartition> all = List.copyOf(from.keySet());
        try (var committed = consumer(new ByteArrayDeserializer(), COMMITTED);
                var written = consumer(new ByteArrayDeserializer(), "read_uncommitted")) {
            Map<TopicPartition, Long> ends = committed.endOffsets(all);
            return count(written, from, ends) - count(committed, from, ends);
        }
    }

    private static int count(KafkaConsumer<byte[], byte[]> consumer, Map<TopicPartition, Long> from, Map<TopicPartition, Long> ends) {
        AtomicInteger records = new AtomicInteger();
        read(consumer, List.copyOf(from.keySet()), from, it -> {
            if (it.offset() < ends.get(new TopicPartition(it.topic(), it.partition()))) {
                records.incrementAndGet();
            }
        });
        return records.get();
    }

    /** The names of the changelogs of an application. */
    List<String> changelogs(String application) throws Exception {
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", address()))) {
            return admin.listTopics().names().get().stream()
                    .filter(it -> it.startsWith(application + "-") && it.endsWith("-changelog")).toList();
        }
    }

    /** The ends of topics at this moment. */
    Map<TopicPartition, Long> ends(List<String> topics) {
        try (var consumer = consumer(new StringDeserializer(), COMMITTED)) {
            return consumer.endOffsets(partitions(topics));
        }
    }

    /** Gives all committed records of topics up to now; of a partition that is in {@code from}, those from an offset on. */
    void read(List<String> topics, Map<TopicPartition, Long> from, Consumer<ConsumerRecord<String, String>> reader) {
        try (var consumer = consumer(new StringDeserializer(), COMMITTED)) {
            read(consumer, partitions(topics), from, reader);
        }
    }

    private static <T> void read(
            KafkaConsumer<T, T> consumer,
            List<TopicPartition> partitions,
            Map<TopicPartition, Long> from,
            Consumer<ConsumerRecord<T, T>> reader) {
        consumer.assign(partitions);
        partitions.forEach(it -> consumer.seek(it, from.getOrDefault(it, 0L)));
        Map<TopicPartition, Long> ends = consumer.endOffsets(partitions);
        while (partitions.stream().anyMatch(it -> consumer.position(it) < ends.get(it))) {
            consumer.poll(Duration.ofMillis(200)).forEach(reader);
        }
    }

    private <T> KafkaConsumer<T, T> consumer(Deserializer<T> deserializer, String isolation) {
        Map<String, Object> settings = Map.of("bootstrap.servers", address(), "isolation.level", isolation);
        return new KafkaConsumer<>(settings, deserializer, deserializer);
    }

    List<TopicPartition> partitions(List<String> topics) {
        List<TopicPartition> all = new ArrayList<>();
        topics.forEach(topic -> IntStream.range(0, partitions).forEach(it -> all.add(new TopicPartition(topic, it))));
        return all;
    }

    /** Removes the topics whose names begin so. */
    void deleteTopics(String beginning) throws Exception {
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", address()))) {
            List<String> names = admin.listTopics().names().get().stream().filter(it -> it.startsWith(beginning)).toList();
            admin.deleteTopics(names).all().get();
        }
    }

    /** The last value of each key. */
    static Map<String, String> last(List<ConsumerRecord<String, String>> records) {
        Map<String, String> last = new TreeMap<>();
        records.forEach(it -> {
            if (it.value() == null) {
                last.remove(it.key());
            } else {
                last.put(it.key(), it.value());
            }
        });
        return last;
    }

    @Override
    public void close() {
        broker.close();
    }
}
