package io.windrow;

import java.time.Duration;
import java.util.Iterator;
import java.util.NoSuchElementException;
import java.util.Optional;

/**
 * The changes of a database, in the order of commits: each comes once, as soon as it is visible, and is durable before. One
 * thread at a time may use it, and any may close it. Windrow's docs/changes.md says what comes and what is kept.
 *
 * <p>{@link #poll} waits for a change. As an iterator it has the changes that are there now: {@link #hasNext} is false until
 * the next commit. {@code FELL_BEHIND} means that changes are not kept any more: begin again with a snapshot. After another
 * error the next call reads the same change again.
 */
public final class Changes implements Iterator<Change>, AutoCloseable {
    /** A wait notices an interrupt or a close after so many milliseconds at most. */
    private static final long SLICE = 200;

    private final Handle handle;
    /** What {@link #hasNext} has found. */
    private Change ahead;
    private long positionBefore;

    Changes(Handle handle) {
        this.handle = handle;
        handle.closeWith(this);
    }

    /**
     * The next change. Waits for a commit for at most {@code timeout}. An interrupt of the thread ends the wait, and stays
     * noted in the thread.
     */
    public Optional<Change> poll(Duration timeout) {
        if (hasChange()) {
            return Optional.of(next());
        }
        long end = System.nanoTime() + nanoseconds(timeout);
        while (true) {
            long left = Thread.currentThread().isInterrupted() ? 0 : end - System.nanoTime();
            long milliseconds = Math.min(SLICE, Math.max(0, (left + 999_999) / 1_000_000));
            byte[] change = read(milliseconds);
            if (change != null) {
                return Optional.of(Unpacked.change(change));
            }
            if (left <= 0) {
                return Optional.empty();
            }
        }
    }

    private static long nanoseconds(Duration timeout) {
        if (timeout.isNegative()) {
            throw new WindrowException(ErrorCode.INVALID_ARGUMENT, "the timeout is negative");
        }
        // A century is for ever.
        return timeout.toDays() > 36_500 ? Long.MAX_VALUE / 2 : timeout.toNanos();
    }

    /** Whether a change is there now. */
    @Override
    public boolean hasNext() {
        handle.check();
        if (ahead == null) {
            positionBefore = position();
            byte[] change = read(0);
            ahead = change == null ? null : Unpacked.change(change);
        }
        return hasChange();
    }

    private boolean hasChange() {
        return ahead != null;
    }

    @Override
    public Change next() {
        if (!hasNext()) {
            throw new NoSuchElementException();
        }
        Change change = ahead;
        ahead = null;
        return change;
    }

    /** Every change before this number has come, or was before the beginning. */
    public long position() {
        if (hasChange()) {
            handle.check();
            return positionBefore;
        }
        long changes = handle.enter();
        try {
            return Native.position(changes);
        } finally {
            handle.leave(this);
        }
    }

    private byte[] read(long milliseconds) {
        long changes = handle.enter();
        try {
            return Native.nextChange(changes, milliseconds);
        } finally {
            handle.leave(this);
        }
    }

    /** Ends the feed. A thread that waits for a change notices it soon. */
    @Override
    public void close() {
        handle.close();
    }
}
