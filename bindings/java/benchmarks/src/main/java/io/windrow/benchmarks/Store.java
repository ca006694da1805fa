package io.windrow.benchmarks;

import java.nio.ByteBuffer;
import java.nio.file.Path;

/** What is measured of both libraries. */
interface Store extends AutoCloseable {
    static Store open(String name, Path folder) throws Exception {
        return name.equals("windrow") ? new WindrowStore(folder) : new RocksStore(folder);
    }

    byte[] get(byte[] key) throws Exception;

    /** The bytes of a value that is read into a direct buffer. */
    int get(ByteBuffer key, ByteBuffer value) throws Exception;

    void put(byte[] key, byte[] value) throws Exception;

    void put(ByteBuffer key, ByteBuffer value) throws Exception;

    /** Writes the values of all keys as one. */
    void batch(byte[][] keys, byte[] value) throws Exception;

    /** The bytes of so many entries from {@code start} on. */
    long scan(byte[] start, int entries) throws Exception;

    /** Leaves no background work. */
    void settle() throws Exception;

    @Override
    void close();
}
