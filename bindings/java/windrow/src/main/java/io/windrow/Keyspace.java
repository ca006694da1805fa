package io.windrow;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.Arrays;
import java.util.Iterator;
import java.util.Objects;
import java.util.Optional;
import java.util.function.UnaryOperator;

/**
 * A named, ordered map of a database. Any thread may use it. The close of the database closes it.
 *
 * <p>Each call is atomic and has the durability of {@link Options#durability} unless it names another. A value has at most
 * 1 GiB.
 */
public final class Keyspace extends View {
    private static final int TRIES_MAX = 200;

    Keyspace(Database database, Handle handle, long view) {
        super(database, handle, view);
        handle.closeWith(this);
    }

    /** The database. */
    public Database database() {
        return database;
    }

    /** The name, which {@link #rename} changes. */
    public String name() {
        long keyspace = handle.enter();
        try {
            return new String(Native.keyspaceName(keyspace), UTF_8);
        } finally {
            handle.leave(this);
        }
    }

    /** Gives the keyspace another name. */
    public void rename(String name) {
        long keyspace = handle.enter();
        try {
            Native.rename(keyspace, name.getBytes(UTF_8));
        } finally {
            handle.leave(this);
        }
    }

    /** The options, as JSON. */
    public String options() {
        long keyspace = handle.enter();
        try {
            return new String(Native.keyspaceOptions(keyspace), UTF_8);
        } finally {
            handle.leave(this);
        }
    }

    /** The keyspace at {@code snapshot}. Close it. */
    public SnapshotView at(Snapshot snapshot) {
        long keyspace = handle.enter();
        try {
            long at = snapshot.handle.enter();
            try {
                long view = Native.viewAt(keyspace, at);
                return new SnapshotView(database, database.handle(Handle.VIEW, view, "view"), view);
            } finally {
                snapshot.handle.leave(snapshot);
            }
        } finally {
            handle.leave(this);
        }
    }

    /** Sets the value of {@code key}. */
    public void put(byte[] key, byte[] value) {
        put(key, value, null, null);
    }

    /** Sets the value of {@code key}, with a durability. */
    public void put(byte[] key, byte[] value, Durability durability) {
        put(key, value, null, durability);
    }

    /** Sets the value of {@code key}. It expires after {@code timeToLive}. */
    public void put(byte[] key, byte[] value, Duration timeToLive) {
        put(key, value, Objects.requireNonNull(timeToLive, "timeToLive"), null);
    }

    private void put(byte[] key, byte[] value, Duration timeToLive, Durability durability) {
        Objects.requireNonNull(key, "key");
        Objects.requireNonNull(value, "value");
        long milliseconds = milliseconds(timeToLive);
        long keyspace = handle.enter();
        try {
            Native.put(keyspace, key, value, milliseconds, Durability.number(durability));
        } finally {
            handle.leave(this);
        }
    }

    /**
     * Sets the value of a key: of both, the bytes between position and limit, which do not change. The bytes are copied once,
     * so another thread may change them afterwards. Up to 16 KiB need no array.
     */
    public void put(ByteBuffer key, ByteBuffer value) {
        int keyBytes = key.remaining();
        int valueBytes = value.remaining();
        if (keyBytes > Scratch.BYTES || valueBytes > Scratch.BYTES - keyBytes) {
            put(bytes(key), bytes(value));
            return;
        }
        ByteBuffer scratch = Scratch.get();
        Scratch.fill(scratch, 0, key, keyBytes);
        Scratch.fill(scratch, keyBytes, value, valueBytes);
        long keyspace = handle.enter();
        try {
            Native.putAt(keyspace, Scratch.address(scratch), keyBytes, valueBytes, Durability.number(null));
        } finally {
            handle.leave(this);
        }
    }

    /** Removes {@code key}. A missing key is no error. */
    public void delete(byte[] key) {
        delete(key, null);
    }

    /** Removes {@code key}, with a durability. */
    public void delete(byte[] key, Durability durability) {
        Objects.requireNonNull(key, "key");
        long keyspace = handle.enter();
        try {
            Native.delete(keyspace, key, Durability.number(durability));
        } finally {
            handle.leave(this);
        }
    }

    /** Removes a key: the bytes between position and limit, which do not change. */
    public void delete(ByteBuffer key) {
        int keyBytes = key.remaining();
        if (keyBytes > Scratch.BYTES) {
            delete(bytes(key));
            return;
        }
        ByteBuffer scratch = Scratch.get();
        Scratch.fill(scratch, 0, key, keyBytes);
        long keyspace = handle.enter();
        try {
            Native.deleteAt(keyspace, Scratch.address(scratch), keyBytes, Durability.number(null));
        } finally {
            handle.leave(this);
        }
    }

    /** Removes all keys of {@code range} by one small write. */
    public void deleteRange(KeyRange range) {
        long keyspace = handle.enter();
        try {
            Native.deleteRange(keyspace, range.start, range.end);
        } finally {
            handle.leave(this);
        }
    }

    /** Writes an operand, which the merge operator of the keyspace folds into the value of {@code key}. */
    public void merge(byte[] key, byte[] operand) {
        Objects.requireNonNull(key, "key");
        Objects.requireNonNull(operand, "operand");
        long keyspace = handle.enter();
        try {
            Native.merge(keyspace, key, operand);
        } finally {
            handle.leave(this);
        }
    }

    /** Writes an operand: of both, the bytes between position and limit, which do not change. */
    public void merge(ByteBuffer key, ByteBuffer operand) {
        int keyBytes = key.remaining();
        int operandBytes = operand.remaining();
        if (keyBytes > Scratch.BYTES || operandBytes > Scratch.BYTES - keyBytes) {
            merge(bytes(key), bytes(operand));
            return;
        }
        ByteBuffer scratch = Scratch.get();
        Scratch.fill(scratch, 0, key, keyBytes);
        Scratch.fill(scratch, keyBytes, operand, operandBytes);
        long keyspace = handle.enter();
        try {
            Native.mergeAt(keyspace, Scratch.address(scratch), keyBytes, operandBytes);
        } finally {
            handle.leave(this);
        }
    }

    /** Sets the value of {@code key} if it has none, in one step. Returns whether it had none. */
    public boolean putIfAbsent(byte[] key, byte[] value) {
        return compareAndSwap(key, null, Objects.requireNonNull(value, "value"));
    }

    /** Sets the value of {@code key} to {@code value} if it is {@code expected}; null is no value. Returns whether it was. */
    public boolean compareAndSwap(byte[] key, byte[] expected, byte[] value) {
        Objects.requireNonNull(key, "key");
        long keyspace = handle.enter();
        try {
            return Native.compareAndSwap(keyspace, key, expected, value);
        } finally {
            handle.leave(this);
        }
    }

    /** Removes {@code key} and returns its value: of several threads, one gets it. */
    public Optional<byte[]> take(byte[] key) {
        Objects.requireNonNull(key, "key");
        long keyspace = handle.enter();
        try {
            return Optional.ofNullable(Native.take(keyspace, key));
        } finally {
            handle.leave(this);
        }
    }

    /**
     * Sets the value of {@code key} to what {@code change} makes of the present one, in one step; null is no value. The
     * function may be called more than once. Returns the new value.
     */
    public Optional<byte[]> update(byte[] key, UnaryOperator<byte[]> change) {
        for (int tries = 1; tries <= TRIES_MAX; tries++) {
            byte[] old = getOrNull(key);
            byte[] value = change.apply(old == null ? null : Arrays.copyOf(old, old.length));
            if (compareAndSwap(key, old, value)) {
                return Optional.ofNullable(value);
            }
            Database.pause(tries);
        }
        throw new WindrowException(ErrorCode.CONFLICT, "other writes to the key came in between each time");
    }

    /**
     * Adds many entries in strictly ascending order of their keys: all of them in one step, or none. It is the fastest way to
     * fill a keyspace. They are durable at the return. Returns their number.
     *
     * <p>The iterator runs in this thread. What it throws ends the load. It must not wait for the background work of the
     * database. A close of the database ends the load with {@code CLOSED}.
     */
    public long bulkLoad(Iterator<Entry> entries) {
        return Loads.load(this, entries, Loads.SORTED);
    }

    /**
     * As {@link #bulkLoad}, for entries in any order; of equal keys the last one counts. They are sorted on disk with about
     * {@code memoryBytes} of memory.
     */
    public long bulkLoadUnsorted(Iterator<Entry> entries, long memoryBytes) {
        if (memoryBytes < 0) {
            throw new WindrowException(ErrorCode.INVALID_ARGUMENT, "the memory of a sort is negative");
        }
        return Loads.load(this, entries, memoryBytes);
    }

    /** Compacts all entries of {@code range} down to the deepest level that has data. */
    public void compact(KeyRange range) {
        long keyspace = handle.enter();
        try {
            Native.compact(keyspace, range.start, range.end);
        } finally {
            handle.leave(this);
        }
    }

    /** About how many keys {@code range} has, from metadata alone. */
    public long approximateCount(KeyRange range) {
        return estimate(range, false);
    }

    /** About how many bytes of files hold the entries of {@code range}, from metadata alone. */
    public long approximateBytes(KeyRange range) {
        return estimate(range, true);
    }

    private long estimate(KeyRange range, boolean bytes) {
        long keyspace = handle.enter();
        try {
            return Native.estimate(keyspace, range.start, range.end, bytes);
        } finally {
            handle.leave(this);
        }
    }

    /** Milliseconds, rounded up; -1 for none. */
    static long milliseconds(Duration timeToLive) {
        if (timeToLive == null) {
            return -1;
        }
        if (timeToLive.isNegative()) {
            throw new WindrowException(ErrorCode.INVALID_ARGUMENT, "a time to live is not negative");
        }
        long whole = timeToLive.toMillis();
        return timeToLive.minusMillis(whole).isZero() ? whole : whole + 1;
    }
}
