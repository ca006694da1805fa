package io.windrow.kafka.streams.endtoend;

import io.windrow.kafka.streams.WindrowStoreSuppliers;
import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import org.apache.kafka.streams.state.BuiltInDslStoreSuppliers.InMemoryDslStoreSuppliers;
import org.apache.kafka.streams.state.BuiltInDslStoreSuppliers.RocksDBDslStoreSuppliers;

/**
 * Measures what bounds the restore of an empty disk: the same changelogs are restored in turns into stores on RocksDB, on Windrow,
 * into those of Kafka in memory, and into stores that throw everything away. The first run of each does not count.
 */
public final class Restores {
    private static final String APPLICATION = "restores";
    private static final Map<String, Class<?>> ENGINES = new LinkedHashMap<>();

    static {
        ENGINES.put("RocksDB", RocksDBDslStoreSuppliers.class);
        ENGINES.put("Windrow", WindrowStoreSuppliers.class);
        ENGINES.put("memory", InMemoryDslStoreSuppliers.class);
        ENGINES.put("nothing", NoStores.class);
    }

    private final Arguments arguments;
    private final Path folder;
    private final Cluster cluster;

    private Restores(Arguments arguments) throws IOException, InterruptedException {
        this.arguments = arguments;
        this.folder = Path.of(arguments.text("folder"));
        this.cluster = new Cluster(folder.resolve("broker"), arguments.number("port"), arguments.number("partitions"));
    }

    public static void main(String[] given) throws Exception {
        Arguments arguments = new Arguments(
                given, "folder=", "engines=RocksDB,Windrow,memory,nothing", "runs=3", "events=100000", "keys=40000", "bytes=1000",
                "copies=2", "partitions=4", "threads=2", "heap=256m", "port=29292");
        System.out.println(arguments);
        Restores measure = new Restores(arguments);
        try {
            measure.run();
        } finally {
            measure.cluster.close();
        }
    }

    private void run() throws Exception {
        cluster.createTopics(List.of(
                Topologies.EVENTS, Topologies.COUNTS, Topologies.WINDOWS, Topologies.SESSIONS, Topologies.JOINED));
        BesideRocks.produce(cluster, arguments);
        try (Running application = start("Windrow")) {
            application.await("state RUNNING");
            cluster.awaitEnd(APPLICATION, Topologies.EVENTS, Duration.ofMinutes(15));
            application.end();
        }
        BesideRocks.delete(state());
        Map<String, List<double[]>> figures = new LinkedHashMap<>();
        for (int run = 0; run <= arguments.number("runs"); run++) {
            for (String engine : arguments.text("engines").split(",")) {
                double[] found = restore(engine);
                if (run > 0) {
                    figures.computeIfAbsent(engine, it -> new ArrayList<>()).add(found);
                }
                System.out.println(run + " " + text(engine, List.of(found)));
            }
        }
        System.out.println("medians: records/s, CPU microseconds for a record of the process and of the threads that restore, MiB of memory");
        figures.forEach((engine, found) -> System.out.println(text(engine, found)));
    }

    /** Returns the records restored in a second, the time of processors for a record, and the most memory. */
    private double[] restore(String engine) throws Exception {
        try (Running application = start(engine)) {
            String[] said = application.await("state RUNNING").split(" ");
            double records = Double.parseDouble(said[3]);
            double process = application.cpu().toNanos() / 1e3;
            double memory = application.peakMemory();
            application.kill();
            return new double[] {
                records / Double.parseDouble(said[5]) * 1e3, process / records, Double.parseDouble(said[8]) * 1e3 / records, memory
            };
        } finally {
            BesideRocks.delete(state());
        }
    }

    private static String text(String engine, List<double[]> found) {
        StringBuilder text = new StringBuilder(engine + ":");
        for (int i = 0; i < found.get(0).length; i++) {
            int measure = i;
            double[] sorted = found.stream().mapToDouble(it -> it[measure]).sorted().toArray();
            double median = (sorted[(sorted.length - 1) / 2] + sorted[sorted.length / 2]) / 2;
            text.append(String.format(Locale.ROOT, median < 100 ? " %.2f" : " %,.0f", median));
        }
        return text.toString();
    }

    private Path state() {
        return folder.resolve("state");
    }

    private Running start(String engine) throws IOException {
        // What is in memory needs a larger heap.
        String heap = engine.equals("memory") ? "1500m" : arguments.text("heap");
        return new Running(folder.resolve("application.log"), heap, Application.arguments(
                "broker=" + cluster.address(),
                "id=" + APPLICATION,
                "state=" + state(),
                "stores=" + ENGINES.get(engine).getName(),
                "topology=counts",
                "copies=" + arguments.number("copies"),
                "threads=" + arguments.number("threads"),
                "member=" + APPLICATION,
                "timeout=45000").all());
    }
}
