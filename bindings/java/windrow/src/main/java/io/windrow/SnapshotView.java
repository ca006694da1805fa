package io.windrow;

/** A keyspace at a snapshot. It stays readable when the snapshot is closed, until it is closed itself. */
public final class SnapshotView extends View implements AutoCloseable {
    SnapshotView(Database database, Handle handle, long view) {
        super(database, handle, view);
        handle.closeWith(this);
    }

    /** Gives up what the view holds. */
    @Override
    public void close() {
        handle.close();
    }
}
