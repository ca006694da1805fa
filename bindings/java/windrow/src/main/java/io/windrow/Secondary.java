package io.windrow;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.nio.file.Path;
import java.time.Duration;

/**
 * A reader of a database that another process may have open for writing. Any thread may use it.
 *
 * <p>Each state that was read is a {@link Database} that is open for reading: all its objects see the same prefix of the
 * order of commits, whatever the writer does. Close a state when a later one replaces it: it keeps files of the writer on
 * the disk. States do not end with the secondary.
 *
 * <pre>{@code
 * try (Secondary secondary = Secondary.open(Path.of("folder"), new Options());
 *         Database state = secondary.catchUp()) {
 *     state.keyspace("planets").get("mars".getBytes());
 * }
 * }</pre>
 */
public final class Secondary implements AutoCloseable {
    private final Handle handle;
    private final Path path;

    private Secondary(Path path, Options options) {
        this.path = path;
        byte[] folder = path.toString().getBytes(UTF_8);
        long address = Events.during(options, (settings, objects, events) ->
                Native.openSecondary(folder, settings, objects, events));
        this.handle = new Handle(Handle.SECONDARY, address, "secondary", null);
        handle.closeWith(this);
    }

    /**
     * Opens the database in the folder {@code path}, also while a process has it open for writing. This process must be
     * allowed to write to the folder, where it says which files it needs.
     */
    public static Secondary open(Path path, Options options) {
        return new Secondary(path, options);
    }

    /** The newest state that was read. Close it. */
    public Database database() {
        return state(false);
    }

    /** Reads what was committed since, and returns the newest state: it has every commit that was acknowledged before. Close it. */
    public Database catchUp() {
        return state(true);
    }

    private Database state(boolean catchUp) {
        long secondary = handle.enter();
        try {
            return new Database(path, Native.stateOfSecondary(secondary, catchUp));
        } finally {
            handle.leave(this);
        }
    }

    /** Catches up by itself after each {@code interval}, until the close. What fails there is tried again. */
    public void follow(Duration interval) {
        long secondary = handle.enter();
        try {
            Native.follow(secondary, interval.toMillis());
        } finally {
            handle.leave(this);
        }
    }

    /** Reads no more. */
    @Override
    public void close() {
        handle.close();
    }
}
