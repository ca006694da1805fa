package io.windrow;

import java.util.List;

/**
 * How a keyspace folds operands into values; see {@link Options#mergeOperator(String, MergeOperator)}.
 *
 * <p>Any thread calls it, also several at once, and any number of times for the same operands. So results depend on the
 * arguments only. It must not use the database. What it throws becomes a {@link WindrowException} with the code {@code MERGE}
 * of the reads of this key, with its text, and loses nothing.
 */
public interface MergeOperator {
    /** Of 1 to 255 bytes. The database records it: every later open needs an operator of this name. */
    String name();

    /**
     * The value of {@code key} after all operands.
     *
     * @param base the value before; null for none
     * @param operands the oldest one first
     */
    byte[] merge(byte[] key, byte[] base, List<byte[]> operands);

    /**
     * One operand with the effect of all of {@code operands} on any value; null if there is no such operand.
     *
     * @param operands at least two, the oldest one first
     */
    default byte[] partialMerge(byte[] key, List<byte[]> operands) {
        return null;
    }
}
