package io.windrow.kafka.streams.endtoend;

import io.windrow.kafka.streams.WindrowStoreSuppliers;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import java.util.Random;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.Stream;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.streams.state.BuiltInDslStoreSuppliers.RocksDBDslStoreSuppliers;

/**
 * Measures the application on Windrow beside the same application on RocksDB, several times in turns, with one broker. Each run
 * begins without state and reads the same events: it catches up, is killed, starts again, ends cleanly, starts again, and
 * starts without the folder of its state. It is a static member of its group, so that a start waits for no session to end.
 *
 * <p>The first run of each engine does not count: it warms the broker and the caches of the machine. All runs must have the same
 * results. With {@code check=true} an aim that is missed is a failure, too.
 */
public final class BesideRocks {
    private static final Duration PATIENCE = Duration.ofMinutes(15);
    private static final List<String> RESULTS =
            List.of(Topologies.COUNTS, Topologies.WINDOWS, Topologies.SESSIONS, Topologies.JOINED);
    private static final List<Measure> MEASURES = List.of(
            new Measure("catch-up, records/s", Aim.AT_LEAST, 1.0),
            new Measure("catch-up, CPU microseconds of the application for a record", Aim.NONE, 0),
            new Measure("peak resident memory, MiB", Aim.AT_MOST, 0.8),
            new Measure("disk while it runs, MiB", Aim.AT_MOST, 0.8),
            new Measure("disk after a clean end, MiB", Aim.AT_MOST, 0.8),
            new Measure("SIGKILL: start to RUNNING, s", Aim.AT_MOST, 0.5),
            new Measure("SIGKILL: records restored", Aim.NONE, 0),
            new Measure("clean end: start to RUNNING, s", Aim.NONE, 0),
            new Measure("clean end: records restored", Aim.NOTHING, 0),
            new Measure("empty disk: start to RUNNING, s", Aim.NONE, 0),
            new Measure("empty disk: records restored/s", Aim.AT_LEAST, 1.3));

    /** What is wanted of the ratio of Windrow's figure to that of RocksDB; {@code NOTHING}: Windrow's is to be zero. */
    private enum Aim {
        NONE(""),
        NOTHING("0"),
        AT_LEAST("at least "),
        AT_MOST("at most ");

        private final String text;

        Aim(String text) {
            this.text = text;
        }
    }

    private record Measure(String name, Aim aim, double bound) {
        String wanted() {
            return aim.text + (bound == 0 ? "" : bound);
        }

        boolean isMissed(double windrow, double ratio) {
            return switch (aim) {
                case NONE -> false;
                case NOTHING -> windrow != 0;
                case AT_LEAST -> !(ratio >= bound);
                case AT_MOST -> !(ratio <= bound);
            };
        }
    }

    private final Arguments arguments;
    private final Path folder;
    private final Cluster cluster;
    private final Map<String, List<List<Double>>> figures = new LinkedHashMap<>();
    /** Those of the first run: the last value of each key, or what stands for it. */
    private Map<String, Integer> results;

    private BesideRocks(Arguments arguments) throws IOException, InterruptedException {
        this.arguments = arguments;
        this.folder = Path.of(arguments.text("folder"));
        this.cluster = new Cluster(folder.resolve("broker"), arguments.number("port"), arguments.number("partitions"));
    }

    public static void main(String[] given) throws Exception {
        Arguments arguments = new Arguments(
                given, "folder=", "runs=2", "events=100000", "keys=20000", "bytes=1000", "copies=2", "partitions=4", "threads=2",
                "heap=256m", "port=29192", "check=false");
        System.out.println(arguments);
        if (arguments.number("runs") % 2 != 0) {
            throw new IllegalArgumentException("each engine is to be first equally often: runs must be even");
        }
        BesideRocks measure = new BesideRocks(arguments);
        boolean isMissed;
        try {
            isMissed = measure.run();
        } finally {
            measure.cluster.close();
        }
        System.exit(isMissed && arguments.text("check").equals("true") ? 2 : 0);
    }

    /** Returns whether an aim is missed. */
    private boolean run() throws Exception {
        cluster.createTopics(List.of(Topologies.EVENTS));
        cluster.createTopics(RESULTS);
        produce(cluster, arguments);
        measure(0, "RocksDB");
        measure(0, "Windrow");
        figures.clear();
        for (int run = 1; run <= arguments.number("runs"); run++) {
            // In turns, and not always the same one first.
            boolean isWindrowFirst = run % 2 != 0;
            measure(run, isWindrowFirst ? "Windrow" : "RocksDB");
            measure(run, isWindrowFirst ? "RocksDB" : "Windrow");
        }
        return print();
    }

    static void produce(Cluster cluster, Arguments arguments) {
        Random random = new Random(1);
        long time = System.currentTimeMillis();
        try (var producer = cluster.producer()) {
            for (int i = 0; i < arguments.number("events"); i++) {
                time += random.nextInt(4);
                String key = "key " + random.nextInt(arguments.number("keys"));
                StringBuilder value = new StringBuilder("event " + i);
                while (value.length() < arguments.number("bytes")) {
                    // Half of it is random, as of texts that compress.
                    value.append(' ').append(Integer.toHexString(random.nextInt())).append(" of it ");
                }
                producer.send(new ProducerRecord<>(Topologies.EVENTS, null, time - random.nextInt(20_000), key, value.toString()));
            }
        }
    }

    private void measure(int run, String engine) throws Exception {
        List<Double> found = new ArrayList<>();
        String id = engine + "-" + run;
        Path state = folder.resolve(id);
        Map<TopicPartition, Long> before = cluster.ends(RESULTS);

        try (Running application = start(id, engine, state)) {
            application.await("state RUNNING");
            long began = System.nanoTime();
            Duration used = application.cpu();
            cluster.awaitEnd(id, Topologies.EVENTS, PATIENCE);
            found.add(arguments.number("events") / seconds(began));
            found.add(application.cpu().minus(used).toNanos() / 1e3 / arguments.number("events"));
            found.add((double) application.peakMemory());
            found.add(mebibytes(state));
            application.kill();
        }
        try (Running application = start(id, engine, state)) {
            Start afterKill = Start.of(application);
            application.end();
            found.add(mebibytes(state));
            found.add(afterKill.seconds);
            found.add(afterKill.restored);
        }
        try (Running application = start(id, engine, state)) {
            Start afterEnd = Start.of(application);
            application.end();
            found.add(afterEnd.seconds);
            found.add(afterEnd.restored);
        }
        delete(state);
        try (Running application = start(id, engine, state)) {
            Start empty = Start.of(application);
            application.kill();
            found.add(empty.seconds);
            found.add(empty.restored / Math.max(empty.restoreSeconds, 0.001));
        }
        delete(state);
        compareResults(id, before);
        cluster.deleteTopics(id);
        figures.computeIfAbsent(engine, it -> new ArrayList<>()).add(found);
        System.out.println(id + " " + found.stream().map(it -> String.format(Locale.ROOT, "%.1f", it)).toList());
    }

    private void compareResults(String id, Map<TopicPartition, Long> before) {
        Map<String, Integer> found = new HashMap<>();
        cluster.read(RESULTS, before, it -> {
            String key = it.topic() + " " + it.key();
            if (it.value() == null) {
                found.remove(key);
            } else {
                found.put(key, it.value().hashCode());
            }
        });
        if (results == null) {
            results = found;
        }
        if (found.isEmpty() || !found.equals(results)) {
            Set<String> all = new TreeSet<>(found.keySet());
            all.addAll(results.keySet());
            all.removeIf(it -> Objects.equals(found.get(it), results.get(it)));
            throw new AssertionError("the results of " + id + " differ from those of the first run, in " + all.size() + " of "
                    + results.size() + " keys: " + all.stream().limit(5).toList());
        }
    }

    private Running start(String id, String engine, Path state) throws IOException {
        Class<?> stores = engine.equals("Windrow") ? WindrowStoreSuppliers.class : RocksDBDslStoreSuppliers.class;
        return new Running(folder.resolve("application.log"), arguments.text("heap"), Application.arguments(
                "broker=" + cluster.address(),
                "id=" + id,
                "state=" + state,
                "stores=" + stores.getName(),
                "topology=counts",
                "copies=" + arguments.number("copies"),
                "threads=" + arguments.number("threads"),
                "member=" + id,
                "timeout=45000").all());
    }

    /** The time from the start to RUNNING, the records that were restored by then, and the time of that. */
    private record Start(double seconds, double restored, double restoreSeconds) {
        static Start of(Running application) throws InterruptedException {
            long began = System.nanoTime();
            String[] said = application.await("state RUNNING").split(" ");
            return new Start(BesideRocks.seconds(began), Double.parseDouble(said[3]), Double.parseDouble(said[5]) / 1000);
        }
    }

    private static double seconds(long began) {
        return (System.nanoTime() - began) / 1e9;
    }

    /** The disk that a folder takes: a file with two names counts once. */
    private static double mebibytes(Path folder) throws IOException {
        Process du = new ProcessBuilder("du", "-sk", folder.toString()).redirectError(ProcessBuilder.Redirect.DISCARD).start();
        return Long.parseLong(new String(du.getInputStream().readAllBytes()).split("\\s")[0]) / 1024.0;
    }

    static void delete(Path folder) throws IOException {
        if (!Files.exists(folder)) {
            return;
        }
        try (Stream<Path> files = Files.walk(folder)) {
            for (Path file : files.sorted(Comparator.reverseOrder()).toList()) {
                Files.deleteIfExists(file);
            }
        }
    }

    /** Returns whether an aim is missed. */
    private boolean print() {
        System.out.println("the results of all runs are equal: " + results.size() + " keys");
        System.out.println("| | RocksDB | Windrow | ratio | wanted | |");
        System.out.println("|---|---|---|---|---|---|");
        boolean isAnyMissed = false;
        for (int i = 0; i < MEASURES.size(); i++) {
            Measure measure = MEASURES.get(i);
            double[] rocks = values("RocksDB", i);
            double[] windrow = values("Windrow", i);
            double ratio = median(windrow) / median(rocks);
            boolean isMissed = measure.isMissed(median(windrow), ratio);
            isAnyMissed |= isMissed;
            System.out.println("| " + measure.name + " | " + text(rocks) + " | " + text(windrow) + " | "
                    + (Double.isFinite(ratio) ? String.format(Locale.ROOT, "%.2f", ratio) : "") + " | " + measure.wanted() + " | "
                    + (measure.aim == Aim.NONE ? "" : isMissed ? "missed" : "met") + " |");
        }
        return isAnyMissed;
    }

    private double[] values(String engine, int measure) {
        return figures.get(engine).stream().mapToDouble(it -> it.get(measure)).sorted().toArray();
    }

    private static double median(double[] sorted) {
        return (sorted[(sorted.length - 1) / 2] + sorted[sorted.length / 2]) / 2;
    }

    private static String text(double[] sorted) {
        return number(median(sorted)) + " (" + number(sorted[0]) + " to " + number(sorted[sorted.length - 1]) + ")";
    }

    private static String number(double value) {
        return String.format(Locale.ROOT, value < 100 && value != Math.rint(value) ? "%.1f" : "%,.0f", value);
    }
}
