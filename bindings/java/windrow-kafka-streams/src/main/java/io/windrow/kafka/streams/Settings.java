package io.windrow.kafka.streams;

import io.windrow.KeyspaceOptions;
import io.windrow.Options;
import java.time.Duration;
import java.util.Map;

/**
 * The settings of the databases, from the configuration of the application. Each store has a database, so its memory counts
 * as often as there are stores on the machine.
 *
 * @param options of a database
 * @param memtableBytes memory of new writes
 * @param cacheBytes memory of the cache of blocks
 * @param persistInterval once in this time, and after as many bytes as a memtable has, commits that may wait are persisted
 */
record Settings(Options options, long memtableBytes, long cacheBytes, Duration persistInterval) {
    static final String MEMTABLE_BYTES = "windrow.memtable.bytes";
    static final String CACHE_BYTES = "windrow.cache.bytes";
    static final String MEMORY_BYTES = "windrow.memory.bytes";
    static final String COMPRESSION = "windrow.compression";
    static final String BLOCK_SOURCE = "windrow.block.source";
    static final String PERSIST_INTERVAL = "windrow.persist.interval.ms";

    /** Values up to this size are with their keys: they are written often, and their disk is wanted back soon. */
    private static final long IN_PLACE_MAX = 32 << 10;
    /** Memtables are small, so as many of them are merged at once as a larger one would have. */
    private static final long LEVEL0_RUNS = 12;
    /** A hundred years, in milliseconds: a moment that far away is one of {@link System#nanoTime}, too. */
    private static final long NEVER = Duration.ofDays(36_500).toMillis();

    static Settings of(Map<String, Object> configuration) {
        long memtable = number(configuration, MEMTABLE_BYTES, 1 << 20);
        long cache = number(configuration, CACHE_BYTES, 2 << 20);
        Object compression = configuration.getOrDefault(COMPRESSION, "lz4");
        KeyspaceOptions keyspaces = new KeyspaceOptions()
                .memtableBytes(memtable)
                .level0Runs(LEVEL0_RUNS)
                .baseBytes(8 << 20)
                .fileBytes(4 << 20)
                .mediumFrom(IN_PLACE_MAX)
                .largeFrom(IN_PLACE_MAX)
                .compression(compression.toString());
        Options options = new Options()
                .log(false)
                .keyspace(keyspaces)
                .memoryBudget(number(configuration, MEMORY_BYTES, 32 << 20))
                .cacheBytes(cache)
                .blockSource(configuration.getOrDefault(BLOCK_SOURCE, "buffered").toString())
                .backgroundThreads(1)
                .openFilesMax(128)
                .reserveBytes(0);
        Duration interval = Duration.ofMillis(Math.min(number(configuration, PERSIST_INTERVAL, 10_000), NEVER));
        return new Settings(options, memtable, cache, interval);
    }

    private static long number(Map<String, Object> configuration, String name, long other) {
        Object value = configuration.get(name);
        return value == null ? other : Long.parseLong(value.toString());
    }
}
