package io.windrow;

import java.time.Instant;

/** A write of a {@link Change}, as it was made. */
public sealed interface Write {
    /** The name that the keyspace had then. */
    String keyspace();

    /**
     * Sets the value of a key.
     *
     * @param expiresAt {@link Instant#MAX} for never
     */
    record Put(String keyspace, byte[] key, byte[] value, Instant expiresAt) implements Write {}

    /** Removes a key. */
    record Delete(String keyspace, byte[] key) implements Write {}

    /** Adds an operand for the merge operator of the keyspace. */
    record Merge(String keyspace, byte[] key, byte[] operand) implements Write {}

    /** Removes all keys of a range. */
    record DeleteRange(String keyspace, KeyRange range) implements Write {}
}
