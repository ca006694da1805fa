package io.windrow.kafka.streams;

import io.windrow.KeyspaceOptions;
import io.windrow.Options;
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
    static final String BLOCK_SOURCE = "windrow.block.source";

    private Settings() {}

    static Options of(Map<String, Object> configuration) {
        long memtable = number(configuration, MEMTABLE_BYTES, 1 << 20);
        Object compression = configuration.getOrDefault(COMPRESSION, "lz4");
        KeyspaceOptions keyspaces = new KeyspaceOptions()
                .memtableBytes(memtable)
                .baseBytes(8 << 20)
                .fileBytes(4 << 20)
                .compression(compression.toString());
        return new Options()
                .keyspace(keyspaces)
                .maxWalBytes(4 * memtable)
                .memoryBudget(number(configuration, MEMORY_BYTES, 32 << 20))
                .cacheBytes(cacheBytes(configuration))
                .blockSource(configuration.getOrDefault(BLOCK_SOURCE, "buffered").toString())
                .backgroundThreads(1)
                .openFilesMax(128)
                .reserveBytes(0);
    }

    static long cacheBytes(Map<String, Object> configuration) {
        return number(configuration, CACHE_BYTES, 2 << 20);
    }

    private static long number(Map<String, Object> configuration, String name, long other) {
        Object value = configuration.get(name);
        return value == null ? other : Long.parseLong(value.toString());
    }
}
