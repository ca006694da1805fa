package io.windrow;

/** A persist that goes on while its caller writes on ({@link Database#beginPersist}). Any thread may use it. */
public final class PendingPersist implements AutoCloseable {
    private final Handle handle;

    PendingPersist(Handle handle) {
        this.handle = handle;
        handle.closeWith(this);
    }

    /**
     * Waits until the writes before {@link Database#beginPersist} survive a power failure. What went wrong is thrown, by further
     * calls, too; then the persist before counts.
     */
    public void await() {
        long persist = handle.enter();
        try {
            Native.awaitPersist(persist);
        } finally {
            handle.leave(this);
        }
    }

    /** Whether {@link #await} would return at once. */
    public boolean isEnded() {
        long persist = handle.enter();
        try {
            return Native.isPersistEnded(persist);
        } finally {
            handle.leave(this);
        }
    }

    /** Forgets the outcome. The persist goes on. */
    @Override
    public void close() {
        handle.close();
    }
}
