package io.windrow.kafka.streams.endtoend;

import io.windrow.kafka.streams.WindrowStoreSuppliers;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;

/**
 * Runs the application against a broker in one or more instances, kills them while they restore and while they work, ends
 * them cleanly, and compares what they have written with a plain computation over the same events. After each kill, and at the
 * end, it compares their stores with the changelogs.
 */
public final class EndToEnd {
    private static final String APPLICATION = "end-to-end";
    private static final int CUSTOMERS = 50;
    private static final String MARKER = "marker";
    private static final Duration PATIENCE = Duration.ofMinutes(5);
    /** What Kafka logs before it wipes the tasks of a thread, with the reason. */
    private static final String FENCED = "is being fenced";
    /** What stores throw, or log, if the transaction of their writes has failed. */
    private static final String REFUSED = "The transaction with the last writes of store";
    private static final String STAYED = "stays at its last commit";

    private final Arguments arguments;
    private final Random random;
    private final Path folder;
    private final Cluster cluster;
    private final Expected expected;
    private final Running[] instances;
    private final Set<Path> markers = new TreeSet<>();
    /** How many lines of the log explain no wipe that is not known yet. */
    private int explained;
    /** Brokers remove what is old. */
    private long time = System.currentTimeMillis();

    private EndToEnd(Arguments arguments) throws IOException, InterruptedException {
        this.arguments = arguments;
        this.folder = Path.of(arguments.text("folder"));
        this.random = new Random(arguments.number("seed"));
        this.cluster = new Cluster(folder.resolve("broker"), arguments.number("port"), arguments.number("partitions"));
        this.expected = new Expected(arguments.number("partitions"));
        this.instances = new Running[arguments.number("instances")];
    }

    public static void main(String[] given) throws Exception {
        Arguments arguments = new Arguments(
                given, "folder=", "seed=1", "kills=5", "aborts=2", "instances=1", "copies=1", "partitions=2", "threads=2", "standbys=0",
                "events=3000", "keys=200", "port=29092");
        System.out.println(arguments);
        EndToEnd run = new EndToEnd(arguments);
        try {
            run.run();
        } finally {
            Stream.of(run.instances).filter(it -> it != null).forEach(Running::close);
            run.cluster.close();
        }
    }

    private void run() throws Exception {
        cluster.createTopics(List.of(Topologies.EVENTS, Topologies.ORDERS, Topologies.CUSTOMERS));
        cluster.createTopics(new ArrayList<>(expected.results().keySet()));
        for (int kill = 1; kill <= arguments.number("kills"); kill++) {
            round();
        }
        for (int abort = 1; abort <= arguments.number("aborts"); abort++) {
            abort(abort % 2 == 0);
        }
        produce();
        for (int i = 0; i < instances.length; i++) {
            start(i);
        }
        awaitResults();
        // More events, so that it is known when each task works after the clean end.
        end("after the last kill");
        produce();
        for (int i = 0; i < instances.length; i++) {
            start(i);
        }
        awaitResults();
        String restored = end("after a clean end");
        check(instances.length > 1 || restored.startsWith("restored 0 "), "a clean restart restores nothing");
        compare().forEach((topic, wrong) -> check(false, topic + " has no other results at the end: " + wrong));
        checkFolders();
        checkStores();
        System.out.println("passed: " + arguments.number("kills") + " kills, " + expected.size() + " events");
    }

    /** Starts instances, kills one while it restores or works, or ends it. */
    private void round() throws Exception {
        produce();
        int victim = random.nextInt(instances.length);
        start(victim);
        for (int i = 0; i < instances.length; i++) {
            if (random.nextBoolean()) {
                start(i);
            }
        }
        // Sometimes before it runs, that is while it restores.
        if (random.nextInt(3) > 0) {
            cluster.awaitEnd(APPLICATION, Topologies.CUSTOMERS, PATIENCE);
        }
        TimeUnit.MILLISECONDS.sleep(random.nextInt(3_000));
        // It is killed while it works.
        produce();
        TimeUnit.MILLISECONDS.sleep(random.nextInt(3_000));
        mark();
        if (random.nextInt(5) == 0) {
            instances[victim].end();
        } else {
            instances[victim].kill();
        }
        instances[victim] = null;
        Changelogs changelogs = new Changelogs(cluster, APPLICATION);
        changelogs.compare(state(victim));
        System.out.println("after a kill: " + changelogs);
    }

    /**
     * Makes the broker abort a transaction whose writes are in stores: a thread waits until it has lasted for too long. The stores
     * of the other threads must not notice. The application is killed when that has happened, or works on.
     */
    private void abort(boolean isKilled) throws Exception {
        for (int i = 0; i < instances.length; i++) {
            if (instances[i] != null) {
                instances[i].end();
                instances[i] = null;
            }
        }
        produce();
        start(0);
        awaitResults();
        mark();
        explained = Files.readAllLines(log()).size();
        Map<TopicPartition, Long> before = cluster.ends(cluster.changelogs(APPLICATION));
        instances[0].pause();
        produce();
        List<String> said = List.of(instances[0].await("pauses ").split(" "));
        int aborted = cluster.awaitAborted(before);
        if (isKilled) {
            // Before the thread goes on, or soon after.
            if (random.nextBoolean()) {
                instances[0].goOn();
                TimeUnit.MILLISECONDS.sleep(random.nextInt(2_000));
            }
            instances[0].kill();
        } else {
            instances[0].goOn();
            awaitResults();
            checkAborted(said.get(1), said.subList(2, said.size()));
            instances[0].end();
        }
        instances[0] = null;
        Changelogs changelogs = new Changelogs(cluster, APPLICATION);
        changelogs.compare(state(0));
        changelogs.checkAny();
        System.out.println("after an abort of " + aborted + " writes" + (isKilled ? ", and a kill: " : ": ") + changelogs);
    }

    /** Kafka has wiped the tasks of a thread, and no others. {@code all}: the name of each thread and its tasks. */
    private void checkAborted(String thread, List<String> all) throws IOException {
        List<String> log = Files.readAllLines(log());
        List<String> fenced = log.subList(explained, log.size()).stream().filter(it -> it.contains(FENCED)).toList();
        explained = log.size();
        check(fenced.stream().anyMatch(it -> it.contains(thread)), "Kafka has fenced " + thread);
        check(fenced.stream().noneMatch(it -> it.contains(REFUSED)), "no store has a thread fenced");
        for (String one : all) {
            String[] parts = one.split("=", 2);
            // A thread may have no tasks.
            List<Path> own = Stream.of(parts[1].split(",")).filter(it -> !it.isEmpty())
                    .map(it -> state(0).resolve(APPLICATION).resolve(it).resolve(MARKER)).toList();
            if (parts[0].equals(thread)) {
                check(!own.stream().allMatch(Files::exists), "the tasks of " + thread + " were wiped");
            } else if (fenced.stream().noneMatch(it -> it.contains(parts[0]))) {
                check(own.stream().allMatch(Files::exists), "no task of another thread was wiped: " + own);
            }
        }
        markers.removeIf(it -> !Files.exists(it));
    }

    private void start(int instance) throws IOException {
        if (instances[instance] == null) {
            instances[instance] = new Running(log(), "256m", Application.arguments(
                    "broker=" + cluster.address(),
                    "id=" + APPLICATION,
                    "state=" + state(instance),
                    "stores=" + WindrowStoreSuppliers.class.getName(),
                    "copies=" + arguments.number("copies"),
                    "threads=" + arguments.number("threads"),
                    "standbys=" + arguments.number("standbys"),
                    "persist=100",
                    "timeout=6000").all());
        }
    }

    private String end(String when) throws Exception {
        mark();
        String said = "";
        for (int i = 0; i < instances.length; i++) {
            said = instances[i].end();
            instances[i] = null;
            System.out.println(when + ": instance " + i + " " + said);
        }
        return said;
    }

    private void produce() {
        try (var producer = cluster.producer()) {
            // All customers are there from the beginning. Kafka's join has a race: it drops the answer that deletes a result if
            // the order has changed meanwhile, and gives none for a new order whose customer is missing.
            for (int i = 0; i < CUSTOMERS && expected.size() == 0; i++) {
                customer(producer, "customer " + i, "first name");
            }
            for (int i = 0; i < arguments.number("events"); i++) {
                time += random.nextInt(20);
                long at = time - random.nextInt(20_000);
                String key = "key " + random.nextInt(arguments.number("keys"));
                String value = "event " + expected.size();
                expected.event(key, value, at);
                producer.send(new ProducerRecord<>(Topologies.EVENTS, null, at, key, value));
                if (random.nextInt(5) == 0) {
                    String order = random.nextInt(10) == 0 ? null : customer() + "|order " + expected.size();
                    expected.order(key, order, at);
                    producer.send(new ProducerRecord<>(Topologies.ORDERS, null, at, key, order));
                }
                if (random.nextInt(20) == 0) {
                    customer(producer, customer(), "name " + expected.size());
                }
            }
        }
    }

    private void customer(KafkaProducer<String, String> producer, String customer, String name) {
        expected.customer(customer, name);
        producer.send(new ProducerRecord<>(Topologies.CUSTOMERS, null, time, customer, name));
    }

    private String customer() {
        return "customer " + random.nextInt(CUSTOMERS);
    }

    private void awaitResults() throws Exception {
        cluster.awaitEnd(APPLICATION, Topologies.EVENTS, PATIENCE);
        long deadline = System.nanoTime() + PATIENCE.toNanos();
        for (Map<String, String> wrong = compare(); !wrong.isEmpty(); wrong = compare()) {
            check(System.nanoTime() < deadline, "all topics have the results of a plain computation: " + wrong);
            TimeUnit.SECONDS.sleep(1);
        }
        expected.results().forEach((topic, results) ->
                System.out.println(topic + ": " + results.size() * arguments.number("copies") + " results are equal"));
    }

    /** What differs, by topic. */
    private Map<String, String> compare() {
        Map<String, String> wrong = new TreeMap<>();
        expected.results().forEach((topic, results) -> {
            List<ConsumerRecord<String, String>> records = cluster.read(topic);
            Map<String, String> found = Cluster.last(records);
            Map<String, String> differences = new TreeMap<>();
            for (int copy = 0; copy < arguments.number("copies"); copy++) {
                String prefix = copy + " ";
                results.forEach((key, value) -> {
                    String result = found.remove(prefix + key);
                    if (!value.equals(result)) {
                        differences.put(prefix + key, value + ", but was " + result);
                    }
                });
            }
            found.keySet().forEach(key -> differences.put(key, "not expected"));
            if (topic.equals(Topologies.PAIRS) || topic.equals(Topologies.VERSIONS)) {
                int twice = records.size() - (int) records.stream().map(ConsumerRecord::key).distinct().count();
                if (twice > 0) {
                    differences.put("records", twice + " came twice");
                }
            }
            if (!differences.isEmpty()) {
                String some = differences.entrySet().stream().limit(5).toList().toString();
                wrong.put(topic, differences.size() + " differ, " + some);
            }
        });
        return wrong;
    }

    /** Puts a file into the folder of each task. It is there until somebody removes the folder. */
    private void mark() throws IOException {
        checkMarkers();
        for (Path task : tasks()) {
            Path marker = task.resolve(MARKER);
            if (markers.add(marker)) {
                Files.createFile(marker);
            }
        }
    }

    /** Kafka wipes the tasks of a thread that was too slow for its group, on a machine with other work. Stores never ask for it. */
    private void checkMarkers() throws IOException {
        List<String> log = Files.readAllLines(log());
        List<String> recent = log.subList(explained, log.size());
        boolean isTooSlow = recent.stream().anyMatch(it -> it.contains(FENCED));
        check(recent.stream().noneMatch(it -> it.contains(FENCED) && it.contains(REFUSED)), "no store has a thread fenced");
        check(isTooSlow || recent.stream().noneMatch(it -> it.contains(STAYED)), "all stores take the commits of Kafka");
        if (!markers.stream().allMatch(Files::exists)) {
            check(isTooSlow, "no task was wiped: " + markers);
            System.out.println("a thread was fenced, and Kafka has wiped its tasks");
            markers.removeIf(it -> !Files.exists(it));
            isTooSlow = false;
        }
        // What a slow thread has lost may be removed a little later.
        explained = isTooSlow ? explained : log.size();
    }

    private List<Path> tasks() throws IOException {
        List<Path> tasks = new ArrayList<>();
        for (int i = 0; i < instances.length; i++) {
            Path state = state(i).resolve(APPLICATION);
            if (Files.exists(state)) {
                try (Stream<Path> found = Files.list(state)) {
                    found.filter(it -> it.getFileName().toString().matches("\\d+_\\d+")).forEach(tasks::add);
                }
            }
        }
        return tasks;
    }

    private void checkFolders() throws IOException {
        checkMarkers();
        check(!markers.isEmpty(), "the tasks have folders");
        List<String> log = Files.readAllLines(log());
        check(log.stream().anyMatch(it -> it.contains("WARN") && it.contains("begins")), "the log has warnings");
        check(log.stream().noneMatch(it -> it.contains("TaskCorruptedException")), "no task was corrupted");
    }

    /** The instances have ended, so what was committed is in the stores of some of them. */
    private void checkStores() throws Exception {
        Changelogs changelogs = new Changelogs(cluster, APPLICATION);
        for (int i = 0; i < instances.length; i++) {
            changelogs.compare(state(i));
        }
        changelogs.checkComplete();
        System.out.println("at the end: " + changelogs);
    }

    private static void check(boolean holds, String what) {
        if (!holds) {
            throw new AssertionError("it does not hold that " + what);
        }
    }

    /** The folder of an instance. */
    private Path state(int instance) {
        return folder.resolve("state " + instance);
    }

    private Path log() {
        return folder.resolve("application.log");
    }
}
