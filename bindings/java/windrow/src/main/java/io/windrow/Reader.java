package io.windrow;

/** Reads entries of a cursor: many by one call of the native library. */
interface Reader {
    // The moves, as the native library knows them.
    int FIRST = 0;
    int LAST = 1;
    int FROM = 2;
    int BEFORE = 3;
    int NEXT = 4;
    int PREVIOUS = 5;

    /**
     * Moves the cursor, and reads at most {@code count} entries in the direction of the move. Returns a byte, which is 1 if
     * no entry is behind these, and then keys and values, each behind its length.
     */
    byte[] read(int move, byte[] key, int count);

    /** How many entries may be read ahead of their use. */
    int countMax();

    /** An exception if the cursor or its database was closed. */
    void check();

    void close();
}
