package io.windrow.kafka.streams;

import io.windrow.KeyspaceOptions;
import io.windrow.Options;
import java.time.Duration;
import java.util.Map;

/**
 * The options of the databases, from the configuration of the application. Each store has a database, so its memory counts
 * as often as there are stores on the machine.
 */
final class Settings {
    static final String MEMTABLE_BYTES = "windrow.memtable.bytes";
    static final String CACHE_BYTES = "windrow.cache.bytes";
    static final String MEMORY_BYTES = "windrow.memory.bytes";
    static final String COMPRESSION = "windrow.compression";
    static final String COMMIT_INTERVAL = "windrow.commit.interval.ms";

    private Settings() {}

    static Options of(Map<String, Object> configuration) {
        long memtable = number(configuration, MEMTABLE_BYTES, 4 << 20);
        Object compression = configuration.getOrDefault(COMPRESSION, "none");
        KeyspaceOptions keyspaces = new KeyspaceOptions()
                .memtableBytes(memtable)
                .baseBytes(16 << 20)
                .fileBytes(4 << 20)
                .compression(compression.toString());
        return new Options()
                .keyspace(keyspaces)
                .maxWalBytes(4 * memtable)
                .memoryBudget(number(configuration, MEMORY_BYTES, 32 << 20))
                .cacheBytes(number(configuration, CACHE_BYTES, 4 << 20))
                .backgroundThreads(1)
                .openFilesMax(128)
                .reserveBytes(0);
    }

    /** With exactly-once, a store commits no more often than that while its task runs. */
    static Duration commitInterval(Map<String, Object> configuration) {
        return Duration.ofMillis(number(configuration, COMMIT_INTERVAL, 5_000));
    }

    private static long number(Map<String, Object> configuration, String name, long other) {
        Object value = configuration.get(name);
        return value == null ? other : Long.parseLong(value.toString());
    }
}
