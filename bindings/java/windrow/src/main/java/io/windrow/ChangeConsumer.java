package io.windrow;

/**
 * A consumer of the changes of a database by its name, whose place survives. The database keeps every change behind the
 * place, within the bounds of {@link Options#changeRetentionBytes} and {@link Options#changeRetentionIdle}. Any thread may use it.
 */
public final class ChangeConsumer implements AutoCloseable {
    private final Database database;
    private final Handle handle;
    private final String name;

    ChangeConsumer(Database database, Handle handle, String name) {
        this.database = database;
        this.handle = handle;
        this.name = name;
        handle.closeWith(this);
    }

    /** The name. */
    public String name() {
        return name;
    }

    /** The changes behind the place. Close it. */
    public Changes changes() {
        long consumer = handle.enter();
        try {
            return new Changes(database.handle(Handle.CHANGES, Native.changesOfConsumer(consumer), "change feed"));
        } finally {
            handle.leave(this);
        }
    }

    /** The place: the consumer has done with every change up to this number. */
    public long acknowledged() {
        long consumer = handle.enter();
        try {
            return Native.acknowledged(consumer);
        } finally {
            handle.leave(this);
        }
    }

    /**
     * Notes that the consumer has done with every change up to {@code sequence}, most often {@link Change#sequence}. The
     * place is durable at the return, which costs syncs: acknowledge after many changes.
     */
    public void acknowledge(long sequence) {
        long consumer = handle.enter();
        try {
            Native.acknowledge(consumer, sequence);
        } finally {
            handle.leave(this);
        }
    }

    /** Gives up this object. The place stays; see {@link Database#removeConsumer}. */
    @Override
    public void close() {
        handle.close();
    }

    /**
     * What a consumer holds.
     *
     * @param acknowledged its place
     * @param heldBytes bytes on disk that nothing but consumers needs
     * @param isBehind whether it has fallen behind: it holds nothing, and changes behind its place may be gone
     */
    public record State(String name, long acknowledged, long heldBytes, boolean isBehind) {}
}
