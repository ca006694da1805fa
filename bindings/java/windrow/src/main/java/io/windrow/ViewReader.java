package io.windrow;

/** Reads a cursor of a view. */
final class ViewReader implements Reader {
    private static final int COUNT_MAX = 1024;

    /** Open as long as somebody reads. */
    @SuppressWarnings("unused")
    private final Database database;
    private final Handle handle;

    ViewReader(Database database, Handle handle) {
        this.database = database;
        this.handle = handle;
    }

    Handle handle() {
        return handle;
    }

    @Override
    public byte[] read(int move, byte[] key, int count) {
        long cursor = handle.enter();
        try {
            return Native.read(cursor, move, key, count);
        } finally {
            handle.leave(this);
        }
    }

    @Override
    public int countMax() {
        return COUNT_MAX;
    }

    @Override
    public void check() {
        handle.check();
    }

    @Override
    public void close() {
        handle.close();
    }
}
