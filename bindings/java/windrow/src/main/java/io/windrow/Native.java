package io.windrow;

import java.nio.ByteBuffer;

/**
 * The native library. Addresses come from {@link Handle}s that the caller has entered, and from the {@link Scratch} of the
 * calling thread, with the numbers of bytes that are there. A durability of -1 is that of the database, a time to live of -1 is
 * none, and null is no bound of a range.
 */
final class Native {
    static {
        Library.load();
    }

    private Native() {}

    static native byte[] version();

    static native long addressOf(ByteBuffer scratch);

    static native void free(int kind, long address);

    static native long open(byte[] path, boolean readOnly, byte[] settings, Object[] objects, long events);

    static native long events();

    static native void endEvents(long events);

    static native byte[] nextEvent(long events);

    static native byte[] candidateValue(long candidate);

    static native void destroy(byte[] path);

    static native void close(long database);

    static native long keyspace(long database, byte[] name, boolean create);

    static native long keyspaceWith(long database, byte[] name, byte[] settings);

    static native void dropKeyspace(long database, byte[] name);

    static native void swapKeyspaces(long database, byte[] first, byte[] second);

    static native byte[] keyspaceNames(long database);

    static native void write(long database, long[] keyspaces, byte[] writes, int length, int durability);

    static native long snapshot(long database);

    static native long sequence(long snapshot);

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

    static native boolean contains(long view, byte[] key);

    static native int getAt(long view, long scratch, int key, int space);

    static native boolean containsAt(long view, long scratch, int key);

    static native long expiresAt(long view, byte[] key);

    static native byte[] multiGet(long view, byte[] keys);

    static native long count(long view, byte[] start, byte[] end);

    static native long cursor(long view, byte[] start, byte[] end);

    static native byte[] read(long cursor, int move, byte[] key, int count);

    static native void put(long keyspace, byte[] key, byte[] value, long timeToLive, int durability);

    static native void delete(long keyspace, byte[] key, int durability);

    static native void merge(long keyspace, byte[] key, byte[] operand);

    static native void putAt(long keyspace, long scratch, int key, int value, int durability);

    static native void deleteAt(long keyspace, long scratch, int key, int durability);

    static native void mergeAt(long keyspace, long scratch, int key, int operand);

    static native void deleteRange(long keyspace, byte[] start, byte[] end);

    static native boolean compareAndSwap(long keyspace, byte[] key, byte[] expected, byte[] value);

    static native byte[] take(long keyspace, byte[] key);

    static native byte[] keyspaceName(long keyspace);

    static native void rename(long keyspace, byte[] name);

    static native byte[] keyspaceOptions(long keyspace);

    static native void compact(long keyspace, byte[] start, byte[] end);

    static native long estimate(long keyspace, byte[] start, byte[] end, boolean bytes);

    static native long beginLoad(long keyspace, long sortBytes);

    static native boolean feed(long load, byte[] chunk, int length);

    static native long endLoad(long load);

    static native long changes(long database, long from);

    static native byte[] nextChange(long changes, long milliseconds);

    static native long position(long changes);

    static native long consumer(long database, byte[] name);

    static native byte[] consumers(long database);

    static native void removeConsumer(long database, byte[] name);

    static native long changesOfConsumer(long consumer);

    static native long acknowledged(long consumer);

    static native void acknowledge(long consumer, long sequence);

    static native long openSecondary(byte[] path, byte[] settings, Object[] objects, long events);

    static native long stateOfSecondary(long secondary, boolean catchUp);

    static native long beginPersist(long database);

    static native void awaitPersist(long persist);

    static native boolean isPersistEnded(long persist);

    static native void follow(long secondary, long milliseconds);

    static native long begin(long database, int isolation, long lockTimeout);

    static native byte[] getOfTransaction(long transaction, long keyspace, byte[] key, int intent);

    static native int getAtOfTransaction(long transaction, long keyspace, long scratch, int key, int space);

    static native void putAtOfTransaction(long transaction, long keyspace, long scratch, int key, int value);

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
