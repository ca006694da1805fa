package io.windrow.benchmarks;

import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.TreeMap;
import org.openjdk.jmh.results.RunResult;
import org.openjdk.jmh.runner.Runner;
import org.openjdk.jmh.runner.RunnerException;
import org.openjdk.jmh.runner.options.OptionsBuilder;
import org.openjdk.jmh.runner.options.TimeValue;
import org.openjdk.jmh.runner.options.VerboseMode;

/**
 * Runs both libraries in turn, each in a virtual machine of its own, several times, and prints the ratios of the medians: of
 * the time, and of the time that the thread had a processor.
 */
public final class Compare {
    private static final List<String> LIBRARIES = List.of("windrow", "rocksdb");

    private Compare() {}

    /** The times of a library: of the clock, and of the processor. */
    private record Times(List<Double> clock, List<Double> processor) {
        Times() {
            this(new ArrayList<>(), new ArrayList<>());
        }
    }

    /** The arguments are the number of rounds, and the names of benchmarks; without names all. */
    public static void main(String[] arguments) throws RunnerException {
        int rounds = Integer.parseInt(arguments[0]);
        List<String> names = arguments.length > 1
                ? List.of(arguments).subList(1, arguments.length)
                : List.of("get", "getDirect", "put", "putDirect", "batch", "scan");
        Map<String, Times> times = new TreeMap<>();
        for (int round = 1; round <= rounds; round++) {
            for (String name : names) {
                for (String library : LIBRARIES) {
                    run(name, library, times.computeIfAbsent(name + " " + library, first -> new Times()));
                }
                print("round " + round, name, times);
            }
        }
        System.out.println();
        names.forEach(name -> print("median of " + rounds, name, times));
    }

    private static void run(String name, String library, Times times) throws RunnerException {
        Collection<RunResult> results = new Runner(new OptionsBuilder()
                .include("\\.Stores\\." + name + "$")
                .param("store", library)
                .forks(1)
                .warmupIterations(3)
                .warmupTime(TimeValue.seconds(1))
                .measurementIterations(3)
                .measurementTime(TimeValue.seconds(1))
                .shouldFailOnError(true)
                .verbosity(VerboseMode.SILENT)
                .build()).run();
        RunResult result = results.iterator().next();
        times.clock.add(result.getPrimaryResult().getScore());
        double nanoseconds = result.getSecondaryResults().get("nanoseconds").getScore();
        times.processor.add(nanoseconds / result.getSecondaryResults().get("calls").getScore());
    }

    private static void print(String what, String name, Map<String, Times> times) {
        Times windrow = times.get(name + " windrow");
        Times rocks = times.get(name + " rocksdb");
        double ours = median(windrow.clock);
        double theirs = median(rocks.clock);
        double oursOfProcessor = median(windrow.processor);
        double theirsOfProcessor = median(rocks.processor);
        System.out.printf(
                Locale.ROOT,
                "%-12s %-10s windrow %9.0f ns  rocksdb %9.0f ns  %.2f times   processor %9.0f %9.0f  %.2f times%n",
                what, name, ours, theirs, theirs / ours, oursOfProcessor, theirsOfProcessor, theirsOfProcessor / oursOfProcessor);
    }

    private static double median(List<Double> values) {
        List<Double> sorted = values.stream().sorted().toList();
        int middle = sorted.size() / 2;
        return sorted.size() % 2 == 1 ? sorted.get(middle) : (sorted.get(middle - 1) + sorted.get(middle)) / 2;
    }
}
