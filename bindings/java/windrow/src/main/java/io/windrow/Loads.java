package io.windrow;

import java.util.Iterator;

/** Bulk loads. The iterator of the caller runs in its own thread, outside of the native library, which takes chunks of entries. */
final class Loads {
    static final long SORTED = -1;

    /** A chunk has no more entries after this many bytes. */
    private static final int CHUNK_BYTES = 64 << 10;

    private Loads() {}

    static long load(Keyspace keyspace, Iterator<Entry> entries, long sortBytes) {
        Database database = keyspace.database;
        Handle load;
        long address = keyspace.handle.enter();
        try {
            load = database.handle(Handle.LOAD, Native.beginLoad(address, sortBytes), "database");
        } finally {
            keyspace.handle.leave(keyspace);
        }
        database.loading(load, 1);
        try {
            Packed chunk = new Packed(2 * CHUNK_BYTES);
            boolean goesOn = true;
            while (goesOn && entries.hasNext()) {
                Entry entry = entries.next();
                chunk.addBytes(entry.key()).addBytes(entry.value());
                if (chunk.length() >= CHUNK_BYTES) {
                    goesOn = feed(load, chunk);
                    chunk.truncate(0);
                }
            }
            if (goesOn && chunk.length() > 0) {
                feed(load, chunk);
            }
            return end(load);
        } finally {
            database.loading(load, -1);
            load.close();
        }
    }

    private static boolean feed(Handle load, Packed chunk) {
        long address = load.enter();
        try {
            return Native.feed(address, chunk.array(), chunk.length());
        } finally {
            load.leave(load);
        }
    }

    private static long end(Handle load) {
        long address = load.enter();
        try {
            return Native.endLoad(address);
        } finally {
            load.leave(load);
        }
    }
}
