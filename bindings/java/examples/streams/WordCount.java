import io.windrow.kafka.streams.WindrowStoreSuppliers;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.io.PrintStream;
import java.net.ServerSocket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Properties;
import kafka.server.KafkaConfig;
import kafka.server.KafkaRaftServer;
import kafka.tools.StorageTool;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.serialization.StringSerializer;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StoreQueryParameters;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.query.KeyQuery;
import org.apache.kafka.streams.query.Position;
import org.apache.kafka.streams.query.PositionBound;
import org.apache.kafka.streams.query.QueryResult;
import org.apache.kafka.streams.query.StateQueryRequest;
import org.apache.kafka.streams.state.KeyValueIterator;
import org.apache.kafka.streams.state.QueryableStoreTypes;
import org.apache.kafka.streams.state.ReadOnlyKeyValueStore;

/**
 * Counts words that come on the standard input, with a broker in this process. A line "? word" asks for the count of a word,
 * and the end of the input prints all counts.
 */
public final class WordCount {
    private static final String WORDS = "words";
    private static final String COUNTS = "counts";

    private final KafkaStreams streams;
    private final KafkaProducer<String, String> producer;
    /** What was written so far. A query that asks for this position sees all of it. */
    private final Position written = Position.emptyPosition();

    private WordCount(String address, Path folder) {
        Properties properties = new Properties();
        properties.put(StreamsConfig.APPLICATION_ID_CONFIG, "word-count");
        properties.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, address);
        properties.put(StreamsConfig.STATE_DIR_CONFIG, folder.resolve("state").toString());
        properties.put(StreamsConfig.PROCESSING_GUARANTEE_CONFIG, StreamsConfig.EXACTLY_ONCE_V2);
        properties.put(StreamsConfig.DEFAULT_KEY_SERDE_CLASS_CONFIG, Serdes.StringSerde.class);
        properties.put(StreamsConfig.DEFAULT_VALUE_SERDE_CLASS_CONFIG, Serdes.StringSerde.class);
        // This line makes Windrow the store.
        properties.put(StreamsConfig.DSL_STORE_SUPPLIERS_CLASS_CONFIG, WindrowStoreSuppliers.class);

        StreamsBuilder builder = new StreamsBuilder();
        builder.stream(WORDS).groupByKey().count(Materialized.as(COUNTS));
        streams = new KafkaStreams(builder.build(), properties);
        producer = new KafkaProducer<>(Map.of("bootstrap.servers", address), new StringSerializer(), new StringSerializer());
    }

    public static void main(String[] arguments) throws Exception {
        Path folder = Files.createTempDirectory("word-count");
        String address = "localhost:" + freePort();
        KafkaRaftServer broker = broker(address, folder);
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", address))) {
            admin.createTopics(List.of(new NewTopic(WORDS, 2, (short) 1))).all().get();
            new WordCount(address, folder).run();
        } finally {
            broker.shutdown();
        }
        System.exit(0);
    }

    private void run() throws Exception {
        streams.start();
        System.out.println("type text; \"? word\" asks for a word; the end of the input ends");
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in));
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            if (line.startsWith("?")) {
                String word = line.substring(1).strip();
                System.out.println(word + ": " + count(word));
            } else {
                write(line);
            }
        }
        printAll();
        producer.close();
        streams.close(Duration.ofSeconds(10));
    }

    private void write(String line) throws Exception {
        for (String word : line.toLowerCase(Locale.ROOT).split("\\W+")) {
            if (!word.isEmpty()) {
                RecordMetadata sent = producer.send(new ProducerRecord<>(WORDS, word, line)).get();
                written.withComponent(WORDS, sent.partition(), sent.offset());
            }
        }
    }

    /** An interactive query of version 2: it waits until the store has all that was written. */
    private long count(String word) throws InterruptedException {
        StateQueryRequest<Long> request = StateQueryRequest.inStore(COUNTS)
                .withQuery(KeyQuery.<String, Long>withKey(word))
                .withPositionBound(PositionBound.at(written));
        while (true) {
            if (streams.state() == KafkaStreams.State.RUNNING) {
                Map<Integer, QueryResult<Long>> results = streams.query(request).getPartitionResults();
                if (results.size() == 2 && results.values().stream().allMatch(QueryResult::isSuccess)) {
                    return results.values().stream().map(QueryResult::getResult).filter(it -> it != null).findFirst().orElse(0L);
                }
            }
            Thread.sleep(50);
        }
    }

    /** An interactive query of version 1: it sees what is there. */
    private void printAll() throws InterruptedException {
        count("");
        ReadOnlyKeyValueStore<String, Long> counts =
                streams.store(StoreQueryParameters.fromNameAndType(COUNTS, QueryableStoreTypes.keyValueStore()));
        try (KeyValueIterator<String, Long> all = counts.all()) {
            all.forEachRemaining(it -> System.out.println(it.key + " = " + it.value));
        }
    }

    private static KafkaRaftServer broker(String address, Path folder) throws IOException {
        String controller = "localhost:" + freePort();
        Properties properties = new Properties();
        properties.put("process.roles", "broker,controller");
        properties.put("node.id", "1");
        properties.put("controller.quorum.voters", "1@" + controller);
        properties.put("listeners", "PLAINTEXT://" + address + ",CONTROLLER://" + controller);
        properties.put("controller.listener.names", "CONTROLLER");
        properties.put("listener.security.protocol.map", "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT");
        properties.put("log.dirs", folder.resolve("broker").toString());
        properties.put("offsets.topic.replication.factor", "1");
        properties.put("offsets.topic.num.partitions", "1");
        properties.put("transaction.state.log.replication.factor", "1");
        properties.put("transaction.state.log.min.isr", "1");
        properties.put("transaction.state.log.num.partitions", "1");
        properties.put("group.initial.rebalance.delay.ms", "0");
        Path file = folder.resolve("broker.properties");
        try (OutputStream to = Files.newOutputStream(file)) {
            properties.store(to, null);
        }
        StorageTool.execute(
                new String[] {"format", "-t", Uuid.randomUuid().toString(), "-c", file.toString()},
                new PrintStream(OutputStream.nullOutputStream()));
        KafkaRaftServer broker = new KafkaRaftServer(new KafkaConfig(properties), Time.SYSTEM);
        broker.startup();
        return broker;
    }

    private static int freePort() throws IOException {
        try (ServerSocket socket = new ServerSocket(0)) {
            return socket.getLocalPort();
        }
    }
}
