package io.windrow;

import java.nio.ByteBuffer;

/**
 * The native library. Addresses come from {@link Handle}s that the caller has entered. A durability of -1 is that of the
 * database, a time to live of -1 is none, and null is no bound of a range.
 */
final class Native {
    static {
        Library.load();
    }

    private Native() {}

    static native byte[] version();

    static native void free(int kind, long address);

    static native long open(byte[] path, boolean readOnly, byte[] settings);

    static native void destroy(byte[] path);

    static native void close(long database);

    static native long keyspace(long database, byte[] name, boolean create);

    static native long keyspaceWith(long database, byte[] name, byte[] settings);

    static native void dropKeyspace(long database, byte[] name);

    static native void swapKeyspaces(long database, byte[] first, byte[] second);

    static native byte[] keyspaceNames(long database);

    static native void write(long database, long[] keyspaces, byte[] writes, int length, int durability);

    static native long snapshot(long database);

    static native void run(long database, int work);

    static native void setBackgroundThreads(long database, int count);

    static native void checkpoint(long database, byte[] path);

    static native byte[] verify(long database);

    static native byte[] statistics(long database, boolean memory);

    static native byte[] preparedTransactions(long database);

    static native void endPrepared(long database, byte[] name, boolean commit);

    static native long backup(long database, byte[] folder, long bytesPerSecond);

    static native byte[] listBackups(byte[] folder);

    static native byte[] verifyBackups(byte[] folder, long number);

    static native void restoreBackup(byte[] folder, long number, byte[] target);

    static native void purgeBackups(byte[] folder, int kind, long argument);

    static native long viewOf(long keyspace);

    static native long viewAt(long keyspace, long snapshot);

    static native byte[] get(long view, byte[] key);

    static native int getDirect(
            long view, ByteBuffer key, int keyStart, int keyLength, ByteBuffer target, int targetStart, int targetLength);

    static native boolean contains(long view, byte[] key);

    static native long expiresAt(long view, byte[] key);

    static native byte[] multiGet(long view, byte[] keys);

    static native long count(long view, byte[] start, byte[] end);

    static native long cursor(long view, byte[] start, byte[] end);

    static native byte[] read(long cursor, int move, byte[] key, int count);

    static native void put(long keyspace, byte[] key, byte[] value, long timeToLive, int durability);

    static native void putDirect(
            long keyspace,
            ByteBuffer key,
            int keyStart,
            int keyLength,
            ByteBuffer value,
            int valueStart,
            int valueLength,
            int durability);

    static native void delete(long keyspace, byte[] key, int durability);

    static native void merge(long keyspace, byte[] key, byte[] operand, int durability);

    static native void deleteRange(long keyspace, byte[] start, byte[] end, int durability);

    static native boolean compareAndSwap(long keyspace, byte[] key, byte[] expected, byte[] value);

    static native byte[] take(long keyspace, byte[] key);

    static native byte[] keyspaceName(long keyspace);

    static native void rename(long keyspace, byte[] name);

    static native byte[] keyspaceOptions(long keyspace);

    static native void compact(long keyspace, byte[] start, byte[] end);

    static native long estimate(long keyspace, byte[] start, byte[] end, boolean bytes);

    static native long begin(long database, int isolation, long lockTimeout);

    static native byte[] getOfTransaction(long transaction, long keyspace, byte[] key, int intent);

    static native long expiresAtOfTransaction(long transaction, long keyspace, byte[] key);

    static native void putOfTransaction(long transaction, long keyspace, byte[] key, byte[] value, long timeToLive);

    static native void deleteOfTransaction(long transaction, long keyspace, byte[] key);

    static native void mergeOfTransaction(long transaction, long keyspace, byte[] key, byte[] operand);

    static native void deleteRangeOfTransaction(long transaction, long keyspace, byte[] start, byte[] end);

    static native long cursorOfTransaction(long transaction, long keyspace, byte[] start, byte[] end);

    static native byte[] readOfTransaction(long transaction, long cursor, int move, byte[] key, int count);

    static native void closeCursorOfTransaction(long transaction, long cursor);

    static native int savepoint(long transaction);

    static native void rollBackTo(long transaction, int savepoint);

    static native void commit(long transaction, int durability, int durabilityOfDatabase);

    static native void prepare(long transaction, byte[] name);

    static native void rollBack(long transaction);
}
