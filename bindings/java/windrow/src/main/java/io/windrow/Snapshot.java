package io.windrow;

/** The state of all keyspaces at one moment, for {@link Keyspace#at}. Any thread may use it. */
public final class Snapshot implements AutoCloseable {
    final Handle handle;

    Snapshot(Handle handle) {
        this.handle = handle;
        handle.closeWith(this);
    }

    /** The number of the newest write that it has. {@link Changes} behind it go on from the next one. */
    public long sequence() {
        long snapshot = handle.enter();
        try {
            return Native.sequence(snapshot);
        } finally {
            handle.leave(this);
        }
    }

    /** Gives the snapshot up. Views at it keep what they need. */
    @Override
    public void close() {
        handle.close();
    }
}
