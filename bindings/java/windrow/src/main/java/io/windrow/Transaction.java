package io.windrow;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.nio.ByteBuffer;
import java.time.Duration;
import java.time.Instant;
import java.util.Objects;
import java.util.Optional;
import java.util.OptionalInt;

/**
 * Reads of one state and writes over it that take effect at one place in the order of commits, or not at all. Several
 * threads may use one; a lock orders their calls. A close without a commit rolls back.
 */
public final class Transaction implements AutoCloseable {
    // How a read counts, as the native library knows it.
    private static final int PLAIN = 0;
    private static final int FOR_UPDATE = 1;
    private static final int FOR_SHARE = 2;

    private final Database database;
    private final Handle handle;

    Transaction(Database database, Handle handle) {
        this.database = database;
        this.handle = handle;
        handle.closeWith(this);
    }

    /** The value of {@code key} as the transaction sees it. */
    public Optional<byte[]> get(Keyspace keyspace, byte[] key) {
        return get(keyspace, key, PLAIN);
    }

    /** As {@link View#get(ByteBuffer, ByteBuffer)}, of what the transaction sees. */
    public OptionalInt get(Keyspace keyspace, ByteBuffer key, ByteBuffer target) {
        int keyBytes = key.remaining();
        if (keyBytes > Scratch.BYTES || target.isReadOnly()) {
            return View.copied(get(keyspace, View.bytes(key)).orElse(null), target);
        }
        ByteBuffer scratch = Scratch.get();
        Scratch.fill(scratch, 0, key, keyBytes);
        int space = Math.min(Scratch.BYTES, target.remaining());
        int length = call(keyspace, (transaction, of) ->
                Native.getAtOfTransaction(transaction, of, Scratch.address(scratch), keyBytes, space));
        return length > Scratch.BYTES
                ? View.copied(get(keyspace, View.bytes(key)).orElse(null), target)
                : View.taken(scratch, target, length);
    }

    /** The value of {@code key}, on which the commit depends in any case. A locking transaction locks the key first. */
    public Optional<byte[]> getForUpdate(Keyspace keyspace, byte[] key) {
        return get(keyspace, key, FOR_UPDATE);
    }

    /** As {@link #getForUpdate}, with a lock that other readers share. */
    public Optional<byte[]> getForShare(Keyspace keyspace, byte[] key) {
        return get(keyspace, key, FOR_SHARE);
    }

    private Optional<byte[]> get(Keyspace keyspace, byte[] key, int intent) {
        Objects.requireNonNull(key, "key");
        return Optional.ofNullable(
                call(keyspace, (transaction, of) -> Native.getOfTransaction(transaction, of, key, intent)));
    }

    /** When the entry of {@code key} expires: {@link Instant#MAX} for never; nothing for a missing key. */
    public Optional<Instant> expiresAt(Keyspace keyspace, byte[] key) {
        Objects.requireNonNull(key, "key");
        long expiry = call(keyspace, (transaction, of) -> Native.expiresAtOfTransaction(transaction, of, key));
        return View.expiry(expiry);
    }

    /** Sets the value of {@code key}. */
    public void put(Keyspace keyspace, byte[] key, byte[] value) {
        put(keyspace, key, value, null);
    }

    /** Sets the value of {@code key}. It expires {@code timeToLive} after this call; null is for ever. */
    public void put(Keyspace keyspace, byte[] key, byte[] value, Duration timeToLive) {
        Objects.requireNonNull(key, "key");
        Objects.requireNonNull(value, "value");
        long milliseconds = Keyspace.milliseconds(timeToLive);
        call(keyspace, (transaction, of) -> {
            Native.putOfTransaction(transaction, of, key, value, milliseconds);
            return null;
        });
    }

    /** As {@link Keyspace#put(ByteBuffer, ByteBuffer)}. */
    public void put(Keyspace keyspace, ByteBuffer key, ByteBuffer value) {
        int keyBytes = key.remaining();
        int valueBytes = value.remaining();
        if (keyBytes > Scratch.BYTES || valueBytes > Scratch.BYTES - keyBytes) {
            put(keyspace, View.bytes(key), View.bytes(value));
            return;
        }
        ByteBuffer scratch = Scratch.get();
        Scratch.fill(scratch, 0, key, keyBytes);
        Scratch.fill(scratch, keyBytes, value, valueBytes);
        call(keyspace, (transaction, of) -> {
            Native.putAtOfTransaction(transaction, of, Scratch.address(scratch), keyBytes, valueBytes);
            return null;
        });
    }

    /** Removes {@code key}. */
    public void delete(Keyspace keyspace, byte[] key) {
        Objects.requireNonNull(key, "key");
        call(keyspace, (transaction, of) -> {
            Native.deleteOfTransaction(transaction, of, key);
            return null;
        });
    }

    /** Writes an operand for the merge operator of the keyspace. */
    public void merge(Keyspace keyspace, byte[] key, byte[] operand) {
        Objects.requireNonNull(key, "key");
        Objects.requireNonNull(operand, "operand");
        call(keyspace, (transaction, of) -> {
            Native.mergeOfTransaction(transaction, of, key, operand);
            return null;
        });
    }

    /** Removes all keys of {@code range}. */
    public void deleteRange(Keyspace keyspace, KeyRange range) {
        call(keyspace, (transaction, of) -> {
            Native.deleteRangeOfTransaction(transaction, of, range.start, range.end);
            return null;
        });
    }

    /** A cursor over what the transaction sees of {@code range}. The commit depends on what it has passed, and no more. */
    public Cursor cursor(Keyspace keyspace, KeyRange range) {
        return new Cursor(open(keyspace, range));
    }

    /** The entries that the transaction sees of {@code range}, in the order of keys. */
    public Entries entries(Keyspace keyspace, KeyRange range) {
        return new Entries(open(keyspace, range), true);
    }

    /** The entries that the transaction sees of {@code range}, against the order of keys. */
    public Entries reverse(Keyspace keyspace, KeyRange range) {
        return new Entries(open(keyspace, range), false);
    }

    private Reader open(Keyspace keyspace, KeyRange range) {
        long cursor = call(keyspace,
                (transaction, of) -> Native.cursorOfTransaction(transaction, of, range.start, range.end));
        return new OwnReader(cursor);
    }

    /** Marks the present state of the writes and locks. */
    public Savepoint savepoint() {
        long transaction = handle.enter();
        try {
            return new Savepoint(this, Native.savepoint(transaction));
        } finally {
            handle.leave(this);
        }
    }

    /** Undoes every write after {@code savepoint}. It can be used again, but later ones are gone. */
    public void rollBackTo(Savepoint savepoint) {
        if (savepoint.transaction() != this) {
            throw new WindrowException(ErrorCode.INVALID_ARGUMENT, "the savepoint is of another transaction");
        }
        long transaction = handle.enter();
        try {
            Native.rollBackTo(transaction, savepoint.number());
        } finally {
            handle.leave(this);
        }
    }

    /** Makes the writes visible as one. {@code CONFLICT} if something has changed on which the transaction depends. */
    public void commit() {
        commit(null);
    }

    /** Commits with a durability. */
    public void commit(Durability durability) {
        long transaction = handle.enter();
        try {
            Native.commit(transaction, Durability.number(durability), Durability.number(database.durability()));
        } finally {
            handle.leave(this);
            handle.close();
        }
    }

    /**
     * Makes the transaction durable under {@code name} without its commit, which {@link Database#commitPrepared} makes, also
     * after a reopen.
     */
    public void prepare(String name) {
        long transaction = handle.enter();
        try {
            Native.prepare(transaction, name.getBytes(UTF_8));
        } finally {
            handle.leave(this);
            handle.close();
        }
    }

    /** Discards the writes, and releases the locks. */
    public void rollBack() {
        long transaction = handle.enter();
        try {
            Native.rollBack(transaction);
        } finally {
            handle.leave(this);
            handle.close();
        }
    }

    /** Rolls back, if the transaction has not ended. */
    @Override
    public void close() {
        handle.close();
    }

    private <R> R call(Keyspace keyspace, Call<R> call) {
        long transaction = handle.enter();
        try {
            long of = keyspace.handle.enter();
            try {
                return call.run(transaction, of);
            } finally {
                keyspace.handle.leave(keyspace);
            }
        } finally {
            handle.leave(this);
        }
    }

    private interface Call<R> {
        R run(long transaction, long keyspace);
    }

    /** Reads a cursor of this transaction. */
    private final class OwnReader implements Reader {
        private final long cursor;
        private boolean closed;

        OwnReader(long cursor) {
            this.cursor = cursor;
        }

        @Override
        public byte[] read(int move, byte[] key, int count) {
            check();
            long transaction = handle.enter();
            try {
                return Native.readOfTransaction(transaction, cursor, move, key, count);
            } finally {
                handle.leave(this);
            }
        }

        @Override
        public int countMax() {
            return 1;
        }

        @Override
        public void check() {
            if (closed) {
                throw new WindrowException(ErrorCode.CLOSED, "the cursor has been closed");
            }
            handle.check();
        }

        @Override
        public void close() {
            if (closed || handle.isClosed()) {
                return;
            }
            closed = true;
            long transaction;
            try {
                transaction = handle.enter();
            } catch (WindrowException ended) {
                return;
            }
            try {
                Native.closeCursorOfTransaction(transaction, cursor);
            } finally {
                handle.leave(this);
            }
        }
    }
}
