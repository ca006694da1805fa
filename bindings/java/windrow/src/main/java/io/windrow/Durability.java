package io.windrow;

/** What an acknowledged write survives. */
public enum Durability {
    /** The end of the process, but not a power failure, until {@link Database#persist}. */
    BUFFERED,
    /** A power failure: the log is synced before the call returns. */
    SYNC;

    static int number(Durability durability) {
        return durability == null ? -1 : durability.ordinal();
    }
}
