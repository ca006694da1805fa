package io.windrow;

import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;

/**
 * Writes to any keyspaces of a database that take effect as one, by {@link Database#write}. A batch costs no call of the
 * native library before. One thread at a time may use it.
 */
public final class Batch {
    // The kinds of writes, as the native library knows them.
    private static final int PUT = 0;
    private static final int DELETE = 1;
    private static final int MERGE = 2;
    private static final int DELETE_RANGE = 3;
    private static final int PUT_WITH_TTL = 4;

    private final Packed writes = new Packed(512);
    private final List<Keyspace> keyspaces = new ArrayList<>(2);
    private int size;
    /** The length of the writes that are whole: an add may fail in its middle. */
    private int length;

    /** Sets the value of {@code key}. */
    public Batch put(Keyspace keyspace, byte[] key, byte[] value) {
        Objects.requireNonNull(value, "value");
        begin(PUT, keyspace, key).addBytes(value);
        return added();
    }

    /** Sets the value of a key: of both, the bytes between position and limit, which are copied and do not change. */
    public Batch put(Keyspace keyspace, ByteBuffer key, ByteBuffer value) {
        Objects.requireNonNull(value, "value");
        begin(PUT, keyspace, key).addBytes(value);
        return added();
    }

    /** Sets the value of {@code key}. It expires {@code timeToLive} after the write. */
    public Batch put(Keyspace keyspace, byte[] key, byte[] value, Duration timeToLive) {
        Objects.requireNonNull(value, "value");
        long milliseconds = Keyspace.milliseconds(Objects.requireNonNull(timeToLive, "timeToLive"));
        begin(PUT_WITH_TTL, keyspace, key).addBytes(value).addLong(milliseconds);
        return added();
    }

    /** Removes {@code key}. */
    public Batch delete(Keyspace keyspace, byte[] key) {
        begin(DELETE, keyspace, key);
        return added();
    }

    /** Removes a key: the bytes between position and limit, which are copied and do not change. */
    public Batch delete(Keyspace keyspace, ByteBuffer key) {
        begin(DELETE, keyspace, key);
        return added();
    }

    /** Writes an operand for the merge operator of the keyspace. */
    public Batch merge(Keyspace keyspace, byte[] key, byte[] operand) {
        Objects.requireNonNull(operand, "operand");
        begin(MERGE, keyspace, key).addBytes(operand);
        return added();
    }

    /** Writes an operand: of both, the bytes between position and limit, which are copied and do not change. */
    public Batch merge(Keyspace keyspace, ByteBuffer key, ByteBuffer operand) {
        Objects.requireNonNull(operand, "operand");
        begin(MERGE, keyspace, key).addBytes(operand);
        return added();
    }

    /** Removes all keys of {@code range}. */
    public Batch deleteRange(Keyspace keyspace, KeyRange range) {
        Objects.requireNonNull(range, "range");
        begin(DELETE_RANGE, keyspace);
        bound(range.start);
        bound(range.end);
        return added();
    }

    /** How many writes it has. */
    public int size() {
        return size;
    }

    /** About how many bytes it has. */
    public int bytes() {
        return length;
    }

    /** Removes all writes. */
    public void clear() {
        keyspaces.clear();
        size = 0;
        length = 0;
    }

    private Packed begin(int kind, Keyspace keyspace, byte[] key) {
        Objects.requireNonNull(key, "key");
        return begin(kind, keyspace).addBytes(key);
    }

    private Packed begin(int kind, Keyspace keyspace, ByteBuffer key) {
        Objects.requireNonNull(key, "key");
        return begin(kind, keyspace).addBytes(key);
    }

    private Packed begin(int kind, Keyspace keyspace) {
        Objects.requireNonNull(keyspace, "keyspace");
        int place = keyspaces.lastIndexOf(keyspace);
        if (place < 0) {
            place = keyspaces.size();
            keyspaces.add(keyspace);
        }
        writes.truncate(length);
        return writes.add(kind).addInt(place);
    }

    private Batch added() {
        length = writes.length();
        size++;
        return this;
    }

    private void bound(byte[] bound) {
        if (bound == null) {
            writes.add(0);
        } else {
            writes.add(1).addBytes(bound);
        }
    }

    /** Passes the writes to the database of this address. */
    void write(long database, Durability durability) {
        long[] addresses = new long[keyspaces.size()];
        int entered = 0;
        try {
            for (; entered < addresses.length; entered++) {
                addresses[entered] = keyspaces.get(entered).handle.enter();
            }
            Native.write(database, addresses, writes.array(), length, Durability.number(durability));
        } finally {
            while (entered > 0) {
                Keyspace keyspace = keyspaces.get(--entered);
                keyspace.handle.leave(keyspace);
            }
        }
    }
}
