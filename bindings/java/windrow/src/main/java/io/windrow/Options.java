package io.windrow;

import java.time.Duration;
import java.util.Locale;
import java.util.Objects;
import java.util.function.Consumer;

/** Options of a database. What is not set has its default, which docs/tuning.md of Windrow describes. */
public final class Options {
    final Settings settings = new Settings();
    Consumer<Event> listener;

    /** Whether an open creates a missing database. Default true. */
    public Options createIfMissing(boolean value) {
        settings.set("create_if_missing", value);
        return this;
    }

    /** Whether an open of an existing database is an error. Default false. */
    public Options errorIfExists(boolean value) {
        settings.set("error_if_exists", value);
        return this;
    }

    /** What writes survive that name no durability. Default {@link Durability#BUFFERED}. */
    public Options durability(Durability value) {
        settings.set("durability", value.name().toLowerCase(Locale.ROOT));
        return this;
    }

    /**
     * Whether writes go to a log; the default is true. Without a log writes cost less, and only {@link Database#persist} makes
     * them durable: whatever ends the process, even a close, the next open finds the database exactly as it was at the last
     * {@code persist}. Writes with {@link Durability#SYNC}, prepared transactions, consumers of changes and secondaries need a log.
     */
    public Options log(boolean value) {
        settings.set("log", value);
        return this;
    }

    /**
     * What an open does if the log of writes is damaged: {@code strict}, the default, fails; {@code up-to-damage} goes on with
     * the commits before the damage.
     */
    public Options recovery(String value) {
        settings.set("recovery", value);
        return this;
    }

    /**
     * How reads get blocks: {@code mapped}, the default, or {@code buffered}. With mapped files a disk that cannot be read ends the
     * process; with buffered ones it is an exception.
     */
    public Options blockSource(String value) {
        settings.set("block_source", value);
        return this;
    }

    /** How long a transaction waits for a lock. Default a second. */
    public Options lockTimeout(Duration value) {
        settings.set("lock_timeout", value);
        return this;
    }

    /** The size of the block cache in bytes. Default 64 MiB. */
    public Options cacheBytes(long value) {
        settings.set("cache_bytes", value);
        return this;
    }

    /** The bound on the write-ahead log in bytes. Default 512 MiB. */
    public Options maxWalBytes(long value) {
        settings.set("max_wal_bytes", value);
        return this;
    }

    /** Threads for flushes and compactions. Default 2. */
    public Options backgroundThreads(long value) {
        settings.set("background_threads", value);
        return this;
    }

    /** The most open table files. Default 512. */
    public Options openFilesMax(long value) {
        settings.set("open_files_max", value);
        return this;
    }

    /** The most bytes per second that compactions write; 0, the default, for no limit. */
    public Options compactionBytesPerSecond(long value) {
        settings.set("compaction_bytes_per_second", value);
        return this;
    }

    /** The bound on memory in bytes. Default 512 MiB; 0 for none. */
    public Options memoryBudget(long value) {
        settings.set("memory_budget", value);
        return this;
    }

    /** The bytes of disk that are kept back for a full disk. Default 4 MiB. */
    public Options reserveBytes(long value) {
        settings.set("reserve_bytes", value);
        return this;
    }

    /** The most bytes on disk that a consumer of changes may hold. Default 1 GiB. */
    public Options changeRetentionBytes(long value) {
        settings.set("change_retention_bytes", value);
        return this;
    }

    /** How long a consumer of changes may hold them without an acknowledgement. Default a day. */
    public Options changeRetentionIdle(Duration value) {
        settings.set("change_retention_idle", value);
        return this;
    }

    /** How often a block is verified again. Default an hour. */
    public Options scrubInterval(Duration value) {
        settings.set("scrub_interval", value);
        return this;
    }

    /** The options of keyspaces that are created without their own. */
    public Options keyspace(KeyspaceOptions options) {
        settings.setAll("keyspace.", options.settings);
        return this;
    }

    /** Gives a keyspace a merge operator by its name, for example {@code windrow.add_u64}. */
    public Options mergeOperator(String keyspace, String operator) {
        Objects.requireNonNull(keyspace, "keyspace");
        settings.remove("merge_function." + keyspace);
        settings.set("merge_operator." + keyspace, operator);
        return this;
    }

    /** Gives a keyspace a merge operator. The database keeps it until its close; so does one that has the database itself. */
    public Options mergeOperator(String keyspace, MergeOperator operator) {
        Objects.requireNonNull(keyspace, "keyspace");
        settings.remove("merge_operator." + keyspace);
        settings.setObject("merge_function." + keyspace, operator.name(), operator);
        return this;
    }

    /** Gives a keyspace a compaction filter. The database keeps it until its close, and records nothing of it. */
    public Options compactionFilter(String keyspace, CompactionFilter filter) {
        Objects.requireNonNull(keyspace, "keyspace");
        settings.setObject("compaction_filter." + keyspace, filter.name(), filter);
        return this;
    }

    /**
     * Has the events of each database that is opened with these options passed to {@code listener}. A thread for each database
     * calls it, one event after the other, and it may make all calls. What it throws goes to the handler of uncaught exceptions.
     */
    public Options listener(Consumer<Event> listener) {
        this.listener = Objects.requireNonNull(listener, "listener");
        return this;
    }
}
