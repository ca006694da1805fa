package io.windrow;

import java.time.Duration;

/** Options of a keyspace. What is not set stays as it is, or has its default, which docs/tuning.md of Windrow describes. */
public final class KeyspaceOptions {
    final Settings settings = new Settings();

    /** A named set of the others, which replaces what was set before: {@code balanced}, {@code leveling}, {@code autumn}, {@code parallax} or {@code lsma}. */
    public KeyspaceOptions preset(String value) {
        settings.set("preset", value);
        return this;
    }

    /** The memory of one memtable in bytes. Default 64 MiB. */
    public KeyspaceOptions memtableBytes(long value) {
        settings.set("memtable_bytes", value);
        return this;
    }

    /** The size ratio of the last two levels. Default 5. */
    public KeyspaceOptions sizeRatio(double value) {
        settings.set("size_ratio", value);
        return this;
    }

    /** By how much ratios grow towards the shallow levels. Default 0.8. */
    public KeyspaceOptions scaling(double value) {
        settings.set("scaling", value);
        return this;
    }

    /** The capacity of level 1 in bytes. Default 256 MiB. */
    public KeyspaceOptions baseBytes(long value) {
        settings.set("base_bytes", value);
        return this;
    }

    /** The size of a table file in bytes. Default 16 MiB. */
    public KeyspaceOptions fileBytes(long value) {
        settings.set("file_bytes", value);
        return this;
    }

    /** The size of a block in bytes. Default 4 KiB. */
    public KeyspaceOptions blockBytes(long value) {
        settings.set("block_bytes", value);
        return this;
    }

    /** Filter bits per key. Default 10. */
    public KeyspaceOptions bitsPerKey(double value) {
        settings.set("bits_per_key", value);
        return this;
    }

    /** How files divide the filter bits: {@code monkey}, the default, or {@code uniform}. */
    public KeyspaceOptions filterAllocation(String value) {
        settings.set("filter_allocation", value);
        return this;
    }

    /** The compression of blocks and values: {@code none}, the default, or {@code lz4}. */
    public KeyspaceOptions compression(String value) {
        settings.set("compression", value);
        return this;
    }

    /** Runs in level 0 before a compaction. Default 4. */
    public KeyspaceOptions level0Runs(long value) {
        settings.set("level0_runs", value);
        return this;
    }

    /** The bound on space amplification. Default 1.6. */
    public KeyspaceOptions maxSpaceAmp(double value) {
        settings.set("max_space_amp", value);
        return this;
    }

    /** From how many bytes on a value is medium. Default 120. */
    public KeyspaceOptions mediumFrom(long value) {
        settings.set("medium_from", value);
        return this;
    }

    /** From how many bytes on a value is large. Default 1024. */
    public KeyspaceOptions largeFrom(long value) {
        settings.set("large_from", value);
        return this;
    }

    /** From which level on medium values are in place: {@code last}, the default, {@code before-last} or {@code never}. */
    public KeyspaceOptions mediumInPlace(String value) {
        settings.set("medium_in_place", value);
        return this;
    }

    /** How flushes order medium values: {@code sorted}, the default, or {@code written}. */
    public KeyspaceOptions mediumOrder(String value) {
        settings.set("medium_order", value);
        return this;
    }

    /** How long values live that are written without a time to live. Default for ever. */
    public KeyspaceOptions defaultTimeToLive(Duration value) {
        settings.set("default_ttl", value);
        return this;
    }

    /** The most segments of a table file, from 1 to 12. Without it the limit depends on the level. */
    public KeyspaceOptions segmentLimit(long segments) {
        settings.set("segment_limit", segments);
        return this;
    }

}
