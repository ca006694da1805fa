package io.windrow;

/** What must not have changed when a transaction commits. */
public enum Isolation {
    /** Everything that the transaction has read: keys, absent keys, and ranges that cursors have passed. */
    SERIALIZABLE,
    /** The keys that the transaction writes, or has read for an update. */
    SNAPSHOT
}
