package io.windrow.benchmarks;

import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Comparator;
import java.util.SplittableRandom;
import java.util.concurrent.TimeUnit;
import org.openjdk.jmh.annotations.AuxCounters;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Level;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Param;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.TearDown;

/** Gets, puts, batches and scans of a store with keys of 16 bytes and values of 100 bytes. */
@State(Scope.Thread)
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
public class Stores {
    private static final int ENTRIES = 200_000;
    private static final int SCANNED = 1000;
    private static final int BATCHED = 100;

    /** The library. */
    @Param({"windrow", "rocksdb"})
    public String store;

    private final SplittableRandom random = new SplittableRandom(1);
    private final byte[] value = new byte[100];
    private final byte[] key = new byte[16];
    private final byte[][] keys = new byte[BATCHED][16];
    private final ByteBuffer directKey = ByteBuffer.allocateDirect(16);
    private final ByteBuffer directValue = ByteBuffer.allocateDirect(100);
    private Path folder;
    private Store opened;

    /** The time that the thread had a processor: what other programmes take of the machine does not count. */
    @State(Scope.Thread)
    @AuxCounters(AuxCounters.Type.EVENTS)
    public static class Processor {
        private static final ThreadMXBean THREADS = ManagementFactory.getThreadMXBean();

        /** Nanoseconds of the thread. */
        public long nanoseconds;
        /** Calls that were measured. */
        public long calls;

        private long begin;

        /** Begins an iteration. */
        @Setup(Level.Iteration)
        public void begin() {
            calls = 0;
            begin = THREADS.getCurrentThreadCpuTime();
        }

        /** Ends it. */
        @TearDown(Level.Iteration)
        public void end() {
            nanoseconds = THREADS.getCurrentThreadCpuTime() - begin;
        }
    }

    /** Fills the store. */
    @Setup(Level.Trial)
    public void fill() throws Exception {
        folder = Files.createTempDirectory(Path.of(System.getProperty("windrow.benchmarks.folder")), store);
        opened = Store.open(store, folder.resolve("store"));
        for (int number = 0; number < ENTRIES; number++) {
            random.nextBytes(value);
            opened.put(number(key, number), value);
        }
        opened.settle();
    }

    /** Removes it. */
    @TearDown(Level.Trial)
    public void remove() throws IOException {
        opened.close();
        try (var files = Files.walk(folder)) {
            files.sorted(Comparator.reverseOrder()).forEach(file -> file.toFile().delete());
        }
    }

    /** A key whose place among the others is mixed. */
    private static byte[] number(byte[] key, int number) {
        long mixed = number * 0x9E37_79B9_7F4A_7C15L;
        for (int i = 0; i < 8; i++) {
            key[i] = (byte) (mixed >>> (56 - 8 * i));
            key[8 + i] = (byte) (number >>> (56 - 8 * i));
        }
        return key;
    }

    private byte[] any(byte[] key) {
        return number(key, random.nextInt(ENTRIES));
    }

    /** A value as an array. */
    @Benchmark
    public byte[] get(Processor processor) throws Exception {
        processor.calls++;
        return opened.get(any(key));
    }

    /** A value in a direct buffer. */
    @Benchmark
    public int getDirect(Processor processor) throws Exception {
        processor.calls++;
        directKey.clear().put(any(key)).flip();
        return opened.get(directKey, directValue.clear());
    }

    /** A new value of a key. */
    @Benchmark
    public void put(Processor processor) throws Exception {
        processor.calls++;
        opened.put(any(key), value);
    }

    /** The same, from direct buffers. */
    @Benchmark
    public void putDirect(Processor processor) throws Exception {
        processor.calls++;
        directKey.clear().put(any(key)).flip();
        opened.put(directKey, directValue.clear());
    }

    /** 100 new values as one. */
    @Benchmark
    public void batch(Processor processor) throws Exception {
        processor.calls++;
        for (byte[] one : keys) {
            any(one);
        }
        opened.batch(keys, value);
    }

    /** 1000 entries from a key on. */
    @Benchmark
    public long scan(Processor processor) throws Exception {
        processor.calls++;
        return opened.scan(any(key), SCANNED);
    }
}
