package io.windrow.kafka.streams.endtoend;

import io.windrow.kafka.streams.WindrowStoreSuppliers;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Random;
import java.util.stream.Stream;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.streams.state.BuiltInDslStoreSuppliers.RocksDBDslStoreSuppliers;

/**
 * Measures the application on Windrow beside the same application on RocksDB, several times in turns, with one broker. Each run
 * begins without state and reads the same events: it catches up, is killed, starts again, ends cleanly, starts again, and
 * starts without the folder of its state. It is a static member of its group, so that a start waits for no session to end.
 */
public final class BesideRocks {
    private static final Duration PATIENCE = Duration.ofMinutes(15);
    private static final List<Measure> MEASURES = List.of(
            new Measure("catch-up, records/s", 1.0, true),
            new Measure("catch-up, CPU microseconds of the application for a record", 0, false),
            new Measure("peak resident memory, MiB", 0.8, false),
            new Measure("disk while it runs, MiB", 0.8, false),
            new Measure("disk after a clean end, MiB", 0.8, false),
            new Measure("SIGKILL: start to RUNNING, s", 0.5, false),
            new Measure("SIGKILL: records restored", 0, false),
            new Measure("clean end: start to RUNNING, s", 0, false),
            new Measure("clean end: records restored", 0, false),
            new Measure("empty disk: start to RUNNING, s", 0, false),
            new Measure("empty disk: records restored/s", 1.3, true));

    /** A figure, and the ratio of Windrow's to RocksDB's that is wanted, 0 for none. */
    private record Measure(String name, double wanted, boolean isMoreBetter) {}

    private final Arguments arguments;
    private final Path folder;
    private final Cluster cluster;
    private final Map<String, List<List<Double>>> figures = new LinkedHashMap<>();

    private BesideRocks(Arguments arguments) throws IOException, InterruptedException {
        this.arguments = arguments;
        this.folder = Path.of(arguments.text("folder"));
        this.cluster = new Cluster(folder.resolve("broker"), arguments.number("port"), arguments.number("partitions"));
    }

    public static void main(String[] given) throws Exception {
        Arguments arguments = new Arguments(
                given, "folder=", "runs=3", "events=100000", "keys=20000", "bytes=1000", "copies=2", "partitions=4", "threads=2", "heap=256m",
                "port=29192");
        System.out.println(arguments);
        BesideRocks measure = new BesideRocks(arguments);
        try {
            measure.run();
        } finally {
            measure.cluster.close();
        }
    }

    private void run() throws Exception {
        cluster.createTopics(List.of(Topologies.EVENTS));
        for (String results : List.of(Topologies.COUNTS, Topologies.WINDOWS, Topologies.SESSIONS, Topologies.JOINED)) {
            cluster.createTopics(List.of(results));
        }
        produce();
        for (int run = 1; run <= arguments.number("runs"); run++) {
            // In turns, and not always the same one first.
            boolean isWindrowFirst = run % 2 == 0;
            measure(run, isWindrowFirst ? "Windrow" : "RocksDB");
            measure(run, isWindrowFirst ? "RocksDB" : "Windrow");
            print();
        }
    }

    private void produce() {
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

        try (Running application = start(id, engine, state)) {
            application.await("state RUNNING");
            long began = System.nanoTime();
            Duration before = application.cpu();
            cluster.awaitEnd(id, Topologies.EVENTS, PATIENCE);
            found.add(arguments.number("events") / seconds(began));
            found.add(application.cpu().minus(before).toNanos() / 1e3 / arguments.number("events"));
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
        figures.computeIfAbsent(engine, it -> new ArrayList<>()).add(found);
        System.out.println(id + " " + found.stream().map(it -> String.format(Locale.ROOT, "%.1f", it)).toList());
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

    private static void delete(Path folder) throws IOException {
        try (Stream<Path> files = Files.walk(folder)) {
            for (Path file : files.sorted(Comparator.reverseOrder()).toList()) {
                Files.deleteIfExists(file);
            }
        }
    }

    private void print() {
        System.out.println("| | RocksDB | Windrow | ratio | wanted |");
        System.out.println("|---|---|---|---|---|");
        for (int i = 0; i < MEASURES.size(); i++) {
            Measure measure = MEASURES.get(i);
            double[] rocks = values("RocksDB", i);
            double[] windrow = values("Windrow", i);
            double ratio = median(windrow) / median(rocks);
            String wanted = measure.wanted == 0 ? "" : (measure.isMoreBetter ? "at least " : "at most ") + measure.wanted;
            System.out.println("| " + measure.name + " | " + text(rocks) + " | " + text(windrow) + " | "
                    + (Double.isFinite(ratio) ? String.format(Locale.ROOT, "%.2f", ratio) : "") + " | " + wanted + " |");
        }
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
