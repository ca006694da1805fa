package io.windrow;

import java.lang.ref.Reference;
import java.nio.ByteBuffer;
import java.util.Arrays;

/**
 * A position in the entries of a range, which moves both ways. It reads up to 1,024 entries or 64 KiB by one call of the
 * native library. One thread at a time may use it. It sees one state, and holds it until its close.
 *
 * <p>A move that returns false leaves the cursor at no entry, until a move to a place. The first {@link #next} of all is
 * {@link #first}, and the first {@link #previous} is {@link #last}. A value that cannot be read is an error of the move to
 * its entry; the next move goes on behind it.
 */
public final class Cursor implements AutoCloseable {
    private static final int COUNT_MIN = 4;
    private static final Place NOWHERE = new Place(new byte[] {1}, 0, 0, 0);

    private final Reader reader;
    /** The present entry, or that there is none. One reference: threads that share a cursor against the rules see no mixture. */
    private Place place = NOWHERE;
    private boolean isForward = true;
    private boolean hasMoved;
    /** Whether a step has to read on: the last move has met an error. */
    private boolean mustGoOn;
    /** Whether the cursor of the native library may be elsewhere: what it has read did not arrive. */
    private boolean isLost;
    private int count = COUNT_MIN;

    /**
     * A place in what was read.
     *
     * @param chunk a byte, and entries: keys and values behind their lengths
     * @param key where the key begins; 0 for no entry
     */
    private record Place(byte[] chunk, int key, int keyBytes, int valueBytes) {
        /** The entry that begins here, or none behind the last one. */
        static Place in(byte[] chunk, int at) {
            if (at >= chunk.length) {
                return new Place(chunk, 0, 0, 0);
            }
            int keyBytes = Packed.intAt(chunk, at);
            return new Place(chunk, at + 4, keyBytes, Packed.intAt(chunk, at + 4 + keyBytes));
        }

        boolean isEntry() {
            return key != 0;
        }

        int value() {
            return key + keyBytes + 4;
        }

        int behind() {
            return value() + valueBytes;
        }

        /** Whether no entry is behind those of the chunk. */
        boolean isLastChunk() {
            return chunk[0] != 0;
        }
    }

    Cursor(Reader reader) {
        this.reader = reader;
    }

    /** Moves to the entry with the least key. */
    public boolean first() {
        return move(Reader.FIRST, null, true);
    }

    /** Moves to the entry with the greatest key. */
    public boolean last() {
        return move(Reader.LAST, null, false);
    }

    /** Moves to the first entry whose key is not less than {@code key}. */
    public boolean seek(byte[] key) {
        return move(Reader.FROM, key.clone(), true);
    }

    /** Moves to the last entry whose key is less than {@code key}. */
    public boolean seekBefore(byte[] key) {
        return move(Reader.BEFORE, key.clone(), false);
    }

    /** Moves to the entry with the next greater key. */
    public boolean next() {
        if (!isForward && place.isEntry()) {
            return move(Reader.FROM, KeyRange.after(key()), true);
        }
        return hasMoved ? step(true) : first();
    }

    /** Moves to the entry with the next smaller key. */
    public boolean previous() {
        if (isForward && place.isEntry()) {
            return move(Reader.BEFORE, key(), false);
        }
        return hasMoved ? step(false) : last();
    }

    /** Whether the cursor is at an entry. */
    public boolean isValid() {
        return place.isEntry();
    }

    /** The key of the entry. */
    public byte[] key() {
        Place at = entry();
        return Arrays.copyOfRange(at.chunk, at.key, at.key + at.keyBytes);
    }

    /** The value of the entry. */
    public byte[] value() {
        Place at = entry();
        return Arrays.copyOfRange(at.chunk, at.value(), at.behind());
    }

    /** The key of the entry without a copy: it cannot be changed, and stays as it is. */
    public ByteBuffer keyBuffer() {
        Place at = entry();
        return ByteBuffer.wrap(at.chunk, at.key, at.keyBytes).slice().asReadOnlyBuffer();
    }

    /** The value of the entry without a copy: it cannot be changed, and stays as it is. */
    public ByteBuffer valueBuffer() {
        Place at = entry();
        return ByteBuffer.wrap(at.chunk, at.value(), at.valueBytes).slice().asReadOnlyBuffer();
    }

    /** Gives up what the cursor holds. Later moves are errors. */
    @Override
    public void close() {
        reader.close();
        place = NOWHERE;
    }

    /** Whether it is known that no entry is behind those that were read. */
    boolean hasReadAll() {
        return place.isLastChunk();
    }

    private Place entry() {
        reader.check();
        Place at = place;
        if (!at.isEntry()) {
            throw new IllegalStateException("the cursor is at no entry");
        }
        return at;
    }

    private boolean move(int move, byte[] key, boolean forward) {
        isForward = forward;
        count = Math.min(COUNT_MIN, reader.countMax());
        return read(move, key);
    }

    /** Moves to the next entry in this direction. It is the present one, unless the last move has met an error. */
    private boolean step(boolean forward) {
        Place at = place;
        boolean isAtTheEnd = at.isEntry() && at.behind() >= at.chunk.length && !at.isLastChunk();
        if (isAtTheEnd || mustGoOn) {
            isForward = forward;
            return read(forward ? Reader.NEXT : Reader.PREVIOUS, null);
        }
        reader.check();
        place = at.isEntry() ? Place.in(at.chunk, at.behind()) : at;
        return place.isEntry();
    }

    private boolean read(int move, byte[] key) {
        boolean isStep = move == Reader.NEXT || move == Reader.PREVIOUS;
        if (isStep && isLost) {
            throw new IllegalStateException("a move has failed: move to a place");
        }
        hasMoved = true;
        isLost = true;
        byte[] chunk;
        try {
            chunk = reader.read(move, key, count);
        } catch (WindrowException error) {
            isLost = false;
            // The next step goes on behind the entry that could not be read.
            mustGoOn = true;
            place = isStep ? place : NOWHERE;
            throw error;
        } finally {
            Reference.reachabilityFence(this);
        }
        isLost = false;
        mustGoOn = false;
        count = Math.min(4 * count, reader.countMax());
        Place at = Place.in(chunk, 1);
        place = at;
        return at.isEntry();
    }
}
