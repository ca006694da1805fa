package io.windrow;

import java.nio.ByteBuffer;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Arrays;
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
            handle.leave();
        }
    }

    /**
     * Reads the value of {@code key} into {@code target}, and returns its length in bytes. If {@code target} has less space,
     * nothing is read. The bytes of the key are those between the position and the limit of {@code key}, which does not
     * change; the position of {@code target} moves behind what was read. Direct buffers need no array.
     */
    public OptionalInt get(ByteBuffer key, ByteBuffer target) {
        if (!key.isDirect() || !target.isDirect() || target.isReadOnly()) {
            byte[] value = getOrNull(bytes(key));
            if (value == null) {
                return OptionalInt.empty();
            }
            if (value.length <= target.remaining()) {
                target.put(value);
            }
            return OptionalInt.of(value.length);
        }
        int length;
        handle.enter();
        try {
            length = Native.getDirect(
                    view, key, key.position(), key.remaining(), target, target.position(), target.remaining());
        } finally {
            handle.leave();
        }
        if (length == MISSING) {
            return OptionalInt.empty();
        }
        if (length <= target.remaining()) {
            target.position(target.position() + length);
        }
        return OptionalInt.of(length);
    }

    /** Whether {@code key} has a value. */
    public boolean contains(byte[] key) {
        Objects.requireNonNull(key, "key");
        handle.enter();
        try {
            return Native.contains(view, key);
        } finally {
            handle.leave();
        }
    }

    /** When the entry of {@code key} expires: {@link Instant#MAX} for never; nothing for a missing key. */
    public Optional<Instant> expiresAt(byte[] key) {
        Objects.requireNonNull(key, "key");
        handle.enter();
        try {
            return expiry(Native.expiresAt(view, key));
        } finally {
            handle.leave();
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
            handle.leave();
        }
        List<byte[]> values = new ArrayList<>(keys.size());
        for (int at = 0; at < found.length; ) {
            int length = Packed.intAt(found, at);
            at += 4;
            if (length == MISSING) {
                values.add(null);
            } else {
                values.add(Arrays.copyOfRange(found, at, at + length));
                at += length;
            }
        }
        return values;
    }

    /** How many keys are in {@code range}. It reads each of them. */
    public long count(KeyRange range) {
        handle.enter();
        try {
            return Native.count(view, range.start, range.end);
        } finally {
            handle.leave();
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
            handle.leave();
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
