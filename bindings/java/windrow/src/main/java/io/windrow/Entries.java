package io.windrow;

import java.lang.ref.Reference;
import java.util.Iterator;
import java.util.NoSuchElementException;

/**
 * Entries one after the other. It gives up what it holds at the end, or at the close. One thread at a time may use it. After
 * the close of the database it is an error to read on.
 */
public final class Entries implements Iterator<Entry>, AutoCloseable {
    private final Cursor cursor;
    private final Reader reader;
    private final boolean isForward;
    /** Whether the cursor is at the entry that is next. */
    private boolean isAhead;
    private boolean hasEnded;
    /** Whether the cursor of the native library is given up, because all was read. */
    private boolean isRead;

    Entries(Reader reader, boolean isForward) {
        this.reader = reader;
        this.isForward = isForward;
        this.cursor = new Cursor(new Unchecked(reader));
        // Few entries are read at once, and then nothing is left to be closed.
        try {
            ahead();
        } catch (RuntimeException error) {
            reader.close();
            throw error;
        }
        if (!isRead && reader instanceof ViewReader view) {
            view.handle().closeWith(this);
        }
    }

    @Override
    public boolean hasNext() {
        return ahead();
    }

    @Override
    public Entry next() {
        if (!ahead()) {
            throw new NoSuchElementException();
        }
        isAhead = false;
        return new Entry(cursor.key(), cursor.value());
    }

    /** The key of the entry that is next. */
    public byte[] peekKey() {
        if (!ahead()) {
            throw new NoSuchElementException();
        }
        return cursor.key();
    }

    /** Gives up what the iterator holds. It has no entries afterwards. */
    @Override
    public void close() {
        hasEnded = true;
        isAhead = false;
        reader.close();
    }

    private boolean ahead() {
        try {
            return findAhead();
        } finally {
            Reference.reachabilityFence(this);
        }
    }

    private boolean findAhead() {
        if (!isRead && !hasEnded) {
            reader.check();
        }
        if (isAhead || hasEnded) {
            return isAhead;
        }
        isAhead = isForward ? cursor.next() : cursor.previous();
        hasEnded = !isAhead;
        if (!isRead && (hasEnded || cursor.hasReadAll())) {
            isRead = true;
            reader.close();
        }
        return isAhead;
    }

    /** What was read stays usable after the cursor of the native library is given up. */
    private record Unchecked(Reader reader) implements Reader {
        @Override
        public byte[] read(int move, byte[] key, int count) {
            return reader.read(move, key, count);
        }

        @Override
        public int countMax() {
            return reader.countMax();
        }

        @Override
        public void check() {}

        @Override
        public void close() {
            reader.close();
        }
    }
}
