package io.windrow;

import java.nio.ByteBuffer;
import java.time.Instant;
import java.util.List;
import java.util.Objects;
import java.util.Optional;
import java.util.OptionalInt;

/**
 * The entries of a keyspace for readers: always in the newest state, or at a snapshot. Any thread may use it.
 *
 * <p>A key has from 1 to 65,536 bytes. All calls throw a {@link WindrowException}: {@code CLOSED} after the close of the
 * database, {@code CORRUPTION} if what a read needs is damaged.
 */
public abstract class View {
    private static final int MISSING = -1;

    final Database database;
    final Handle handle;
    /** The address of the view; {@code handle} has it. */
    private final long view;

    View(Database database, Handle handle, long view) {
        this.database = database;
        this.handle = handle;
        this.view = view;
    }

    /** The value of {@code key}. */
    public Optional<byte[]> get(byte[] key) {
        return Optional.ofNullable(getOrNull(key));
    }

    /** The value of {@code key}, or null: without an object around it. */
    public byte[] getOrNull(byte[] key) {
        Objects.requireNonNull(key, "key");
        handle.enter();
        try {
            return Native.get(view, key);
        } finally {
            handle.leave(this);
        }
    }

    /**
     * Reads the value of {@code key} into {@code target}, and returns its length in bytes. If {@code target} has less space,
     * nothing is read. The bytes of the key are those between the position and the limit of {@code key}, which does not
     * change; the position of {@code target} moves behind what was read. Up to 16 KiB need no array.
     */
    public OptionalInt get(ByteBuffer key, ByteBuffer target) {
        int keyBytes = key.remaining();
        if (keyBytes > Scratch.BYTES || target.isReadOnly()) {
            return copied(getOrNull(bytes(key)), target);
        }
        ByteBuffer scratch = Scratch.get();
        Scratch.fill(scratch, 0, key, keyBytes);
        int space = Math.min(Scratch.BYTES, target.remaining());
        int length;
        handle.enter();
        try {
            length = Native.getAt(view, Scratch.address(scratch), keyBytes, space);
        } finally {
            handle.leave(this);
        }
        return length > Scratch.BYTES ? copied(getOrNull(bytes(key)), target) : taken(scratch, target, length);
    }

    /** Copies a value of this length from the scratch to {@code target}, if that has the space. */
    static OptionalInt taken(ByteBuffer scratch, ByteBuffer target, int length) {
        if (length == MISSING) {
            return OptionalInt.empty();
        }
        if (length <= target.remaining()) {
            Scratch.take(scratch, target, length);
        }
        return OptionalInt.of(length);
    }

    /** Copies a value to {@code target}, if that has the space. Null is no value. */
    static OptionalInt copied(byte[] value, ByteBuffer target) {
        if (value == null) {
            return OptionalInt.empty();
        }
        if (value.length <= target.remaining()) {
            target.put(value);
        }
        return OptionalInt.of(value.length);
    }

    /** Whether {@code key} has a value. */
    public boolean contains(byte[] key) {
        Objects.requireNonNull(key, "key");
        handle.enter();
        try {
            return Native.contains(view, key);
        } finally {
            handle.leave(this);
        }
    }

    /** Whether a key has a value: the bytes between position and limit, which do not change. */
    public boolean contains(ByteBuffer key) {
        int keyBytes = key.remaining();
        if (keyBytes > Scratch.BYTES) {
            return contains(bytes(key));
        }
        ByteBuffer scratch = Scratch.get();
        Scratch.fill(scratch, 0, key, keyBytes);
        handle.enter();
        try {
            return Native.containsAt(view, Scratch.address(scratch), keyBytes);
        } finally {
            handle.leave(this);
        }
    }

    /** When the entry of {@code key} expires: {@link Instant#MAX} for never; nothing for a missing key. */
    public Optional<Instant> expiresAt(byte[] key) {
        Objects.requireNonNull(key, "key");
        handle.enter();
        try {
            return expiry(Native.expiresAt(view, key));
        } finally {
            handle.leave(this);
        }
    }

    /** The values of several keys of one state, null for a missing one, in the order of the keys. */
    public List<byte[]> multiGet(List<byte[]> keys) {
        Packed packed = new Packed(64 * keys.size() + 64);
        keys.forEach(packed::addBytes);
        byte[] found;
        handle.enter();
        try {
            found = Native.multiGet(view, packed.toArray());
        } finally {
            handle.leave(this);
        }
        return new Unpacked(found).takeValues();
    }

    /** How many keys are in {@code range}. It reads each of them. */
    public long count(KeyRange range) {
        handle.enter();
        try {
            return Native.count(view, range.start, range.end);
        } finally {
            handle.leave(this);
        }
    }

    /** A cursor over {@code range}, at the state of now. Close it. */
    public Cursor cursor(KeyRange range) {
        Handle opened = openCursor(range);
        Cursor cursor = new Cursor(new ViewReader(database, opened));
        opened.closeWith(cursor);
        return cursor;
    }

    /** The entries of {@code range} in the order of keys, at the state of now. Close it, unless all entries are taken. */
    public Entries entries(KeyRange range) {
        return new Entries(new ViewReader(database, openCursor(range)), true);
    }

    /** The entries of {@code range} against the order of keys, at the state of now. */
    public Entries reverse(KeyRange range) {
        return new Entries(new ViewReader(database, openCursor(range)), false);
    }

    /** The entry of {@code range} with the least key. */
    public Optional<Entry> first(KeyRange range) {
        try (Entries entries = entries(range)) {
            return entries.hasNext() ? Optional.of(entries.next()) : Optional.empty();
        }
    }

    /** The entry of {@code range} with the greatest key. */
    public Optional<Entry> last(KeyRange range) {
        try (Entries entries = reverse(range)) {
            return entries.hasNext() ? Optional.of(entries.next()) : Optional.empty();
        }
    }

    private Handle openCursor(KeyRange range) {
        handle.enter();
        try {
            return database.handle(Handle.CURSOR, Native.cursor(view, range.start, range.end), "cursor");
        } finally {
            handle.leave(this);
        }
    }

    static Optional<Instant> expiry(long milliseconds) {
        if (milliseconds == MISSING) {
            return Optional.empty();
        }
        return Optional.of(milliseconds == Long.MAX_VALUE ? Instant.MAX : Instant.ofEpochMilli(milliseconds));
    }

    /** A copy of the bytes between the position and the limit. */
    static byte[] bytes(ByteBuffer buffer) {
        byte[] bytes = new byte[buffer.remaining()];
        buffer.duplicate().get(bytes);
        return bytes;
    }
}
