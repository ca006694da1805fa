package io.windrow.kafka.streams;

import java.time.Duration;

/**
 * The moments at which the commits of a store are persisted that may wait: one in each interval, for each store another one. All
 * stores of a process open at about the same time, and a persist costs several syncs: so they do not come together.
 */
final class PersistTimes {
    /** An odd number whose bits are even in all places: it spreads names that differ little. */
    private static final long SPREAD = 0x9E37_79B9_7F4A_7C15L;

    private final long interval;
    private final long offset;

    /** {@code store} is a name that no other store of the process has. */
    PersistTimes(Duration interval, String store) {
        this.interval = interval.toNanos();
        this.offset = this.interval == 0 ? 0 : Math.floorMod(store.hashCode() * SPREAD, this.interval);
    }

    /** The first moment after {@code now}, or this one if there is no interval; both as of {@link System#nanoTime}. */
    long after(long now) {
        return interval == 0 ? now : now + interval - Math.floorMod(now - offset, interval);
    }
}
