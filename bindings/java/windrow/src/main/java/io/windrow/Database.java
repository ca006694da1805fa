package io.windrow;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.locks.LockSupport;
import java.util.function.Function;

/**
 * An open database: a folder of named keyspaces. Any thread may use it, and one process at a time has it open.
 *
 * <pre>{@code
 * try (Database database = Database.open(Path.of("folder"), new Options())) {
 *     Keyspace planets = database.keyspace("planets");
 *     planets.put("mars".getBytes(), "two moons".getBytes());
 * }
 * }</pre>
 */
public final class Database implements AutoCloseable {
    // The work of a call, as the native library knows it.
    private static final int PERSIST = 0;
    private static final int FLUSH = 1;
    private static final int WAIT_IDLE = 2;

    private static final int TRIES_MAX = 200;
    private static final int LOCKING = 2;
    private static final long TIMEOUT_OF_OPTIONS = -1;

    private final Handle handle;
    private final Path path;
    private final Durability durability;
    /** The handles of all objects of this database that are not closed. */
    private final Set<Handle> open = ConcurrentHashMap.newKeySet();

    /** Whether the close is that of this object alone: the state of a secondary may have others. */
    private final boolean isState;
    /** Threads that run the source of a bulk load, and how many. */
    private final Map<Thread, Integer> loading = new ConcurrentHashMap<>();
    private volatile boolean isClosing;

    private Database(Path path, Options options, boolean readOnly) {
        this.path = path;
        this.isState = false;
        this.durability = "sync".equals(options.settings.get("durability")) ? Durability.SYNC : Durability.BUFFERED;
        byte[] folder = path.toString().getBytes(UTF_8);
        long address = Events.during(options, (settings, objects, events) ->
                Native.open(folder, readOnly, settings, objects, events));
        this.handle = new Handle(Handle.DATABASE, address, "database", null);
        handle.closeWith(this);
    }

    /** A state of a secondary. */
    Database(Path path, long address) {
        this.path = path;
        this.isState = true;
        this.durability = Durability.BUFFERED;
        this.handle = new Handle(Handle.DATABASE, address, "database", null);
        handle.closeWith(this);
    }

    /** Opens the database in the folder {@code path}, or creates it. */
    public static Database open(Path path, Options options) {
        return new Database(path, options, false);
    }

    /** Opens the database in the folder {@code path} for reading only. */
    public static Database openReadOnly(Path path, Options options) {
        return new Database(path, options, true);
    }

    /** Removes the database in the folder {@code path} with all entries. A missing one is no error. */
    public static void destroy(Path path) {
        Native.destroy(path.toString().getBytes(UTF_8));
    }

    /** The folder. */
    public Path path() {
        return path;
    }

    /** Whether the database was closed. */
    public boolean isClosed() {
        return handle.isClosed();
    }

    /** Opens the keyspace {@code name}, or creates it. */
    public Keyspace keyspace(String name) {
        return keyspaceOf(database -> Native.keyspace(database, name.getBytes(UTF_8), true));
    }

    /** Opens the keyspace {@code name}, or creates it, with options that are recorded. */
    public Keyspace keyspace(String name, KeyspaceOptions options) {
        byte[] settings = options.settings.packed();
        return keyspaceOf(database -> Native.keyspaceWith(database, name.getBytes(UTF_8), settings));
    }

    /** Opens the keyspace {@code name}, if it exists. */
    public Optional<Keyspace> existingKeyspace(String name) {
        return Optional.ofNullable(keyspaceOf(database -> Native.keyspace(database, name.getBytes(UTF_8), false)));
    }

    private Keyspace keyspaceOf(Function<Long, Long> opening) {
        return call(database -> {
            long keyspace = opening.apply(database);
            if (keyspace == 0) {
                return null;
            }
            // Before the handle exists: a close in another thread may free the keyspace from then on.
            long view = Native.viewOf(keyspace);
            return new Keyspace(this, handle(Handle.KEYSPACE, keyspace, "database"), view);
        });
    }

    /** Removes the keyspace {@code name} with all entries. */
    public void dropKeyspace(String name) {
        run(database -> Native.dropKeyspace(database, name.getBytes(UTF_8)));
    }

    /** Exchanges the names of two keyspaces, in one step. */
    public void swapKeyspaces(String first, String second) {
        run(database -> Native.swapKeyspaces(database, first.getBytes(UTF_8), second.getBytes(UTF_8)));
    }

    /** The names of all keyspaces. */
    public List<String> keyspaceNames() {
        return call(database -> Unpacked.texts(Native.keyspaceNames(database)));
    }

    /** Writes a batch as one. The batch keeps its content. */
    public void write(Batch batch) {
        write(batch, null);
    }

    /** Writes a batch as one, with a durability; null is that of the database. */
    public void write(Batch batch, Durability durability) {
        run(database -> batch.write(database, durability));
    }

    /** The state of all keyspaces now. Close it. */
    public Snapshot snapshot() {
        return call(database -> new Snapshot(handle(Handle.SNAPSHOT, Native.snapshot(database), "snapshot")));
    }

    /** Begins a transaction without locks. */
    public Transaction begin(Isolation isolation) {
        return begin(isolation.ordinal(), TIMEOUT_OF_OPTIONS);
    }

    /** Begins a transaction that locks what it writes. */
    public Transaction beginLocking() {
        return begin(LOCKING, TIMEOUT_OF_OPTIONS);
    }

    /** Begins a transaction that locks what it writes, and waits so long for each lock at most. */
    public Transaction beginLocking(Duration timeout) {
        if (timeout.isNegative()) {
            throw new WindrowException(ErrorCode.INVALID_ARGUMENT, "the timeout is negative");
        }
        return begin(LOCKING, timeout.toMillis());
    }

    private Transaction begin(int isolation, long timeout) {
        return call(database -> {
            long transaction = Native.begin(database, isolation, timeout);
            return new Transaction(this, handle(Handle.TRANSACTION, transaction, "transaction"));
        });
    }

    /**
     * Runs {@code work} in a serializable transaction and commits it. After a conflict it waits for a short random time and
     * begins again, up to 200 times. An exception of {@code work} rolls back.
     */
    public <R> R transact(Function<Transaction, R> work) {
        for (int tries = 1; ; tries++) {
            try (Transaction transaction = begin(Isolation.SERIALIZABLE)) {
                R result = work.apply(transaction);
                transaction.commit();
                return result;
            } catch (WindrowException error) {
                if (error.code() != ErrorCode.CONFLICT || tries == TRIES_MAX) {
                    throw error;
                }
            }
            pause(tries);
        }
    }

    /** Waits for a short random time, up to a millisecond, so that of those who try again one comes through. */
    static void pause(int tries) {
        LockSupport.parkNanos(ThreadLocalRandom.current().nextLong(1L << Math.min(20, 10 + tries)));
    }

    /** The names of the prepared transactions. */
    public List<String> preparedTransactions() {
        return call(database -> Unpacked.texts(Native.preparedTransactions(database)));
    }

    /** Commits a prepared transaction. It is durable at the return. */
    public void commitPrepared(String name) {
        run(database -> Native.endPrepared(database, name.getBytes(UTF_8), true));
    }

    /** Rolls back a prepared transaction. */
    public void rollBackPrepared(String name) {
        run(database -> Native.endPrepared(database, name.getBytes(UTF_8), false));
    }

    /** Makes all acknowledged writes survive a power failure. */
    public void persist() {
        run(database -> Native.run(database, PERSIST));
    }

    /**
     * Makes all acknowledged writes survive a power failure, as {@link #persist} does, but without a {@link Options#log log} a
     * background thread does the flushes and syncs. Writes that come later do not count. Until it has ended, other flushes, loads
     * and changes of keyspaces wait, and so does the next persist. A close of the database does not wait for it.
     */
    public PendingPersist beginPersist() {
        return call(database -> new PendingPersist(handle(Handle.PERSIST, Native.beginPersist(database), "persist")));
    }

    /** Writes all memtables to tables. */
    public void flush() {
        run(database -> Native.run(database, FLUSH));
    }

    /** Waits until no background work is due. */
    public void waitIdle() {
        if (loading.containsKey(Thread.currentThread())) {
            throw new WindrowException(
                    ErrorCode.INVALID_ARGUMENT, "the source of a bulk load cannot wait for the end of the load");
        }
        run(database -> Native.run(database, WAIT_IDLE));
    }

    /** Sets the number of background threads, from 1 on. */
    public void setBackgroundThreads(int count) {
        run(database -> Native.setBackgroundThreads(database, count));
    }

    /** Makes a copy of the database in the folder {@code target}, which is empty or missing. Files are linked where possible. */
    public void checkpoint(Path target) {
        run(database -> Native.checkpoint(database, target.toString().getBytes(UTF_8)));
    }

    /** Makes a backup, and returns its number. */
    public long backup(Backups backups) {
        return backup(backups, 0);
    }

    /** Makes a backup that reads at most so many bytes per second, 0 for no limit, and returns its number. */
    public long backup(Backups backups, long bytesPerSecond) {
        return call(database -> Native.backup(database, backups.folder(), bytesPerSecond));
    }

    /** Checks every block and every value. Returns a sentence for each damage. */
    public List<String> verify() {
        return call(database -> Unpacked.texts(Native.verify(database)));
    }

    /** The work since the open, and the shape of each keyspace, as JSON. */
    public String statistics() {
        return call(database -> new String(Native.statistics(database, false), UTF_8));
    }

    /** The memory of the database by purpose, in bytes, as JSON. */
    public String memory() {
        return call(database -> new String(Native.statistics(database, true), UTF_8));
    }

    /**
     * The changes from the number {@code from} on, as long as the logs have them: without a consumer nothing is kept for them.
     * Close it.
     */
    public Changes changes(long from) {
        return call(database -> new Changes(handle(Handle.CHANGES, Native.changes(database, from), "change feed")));
    }

    /**
     * The consumer {@code name} of the changes, created if missing: then it begins behind the newest write, and a snapshot
     * that is taken afterwards has everything before its changes.
     */
    public ChangeConsumer consumer(String name) {
        return call(database -> {
            long consumer = Native.consumer(database, name.getBytes(UTF_8));
            return new ChangeConsumer(this, handle(Handle.CONSUMER, consumer, "consumer"), name);
        });
    }

    /** All consumers, by their names, and what they hold. */
    public List<ChangeConsumer.State> consumers() {
        return call(database -> {
            Unpacked from = new Unpacked(Native.consumers(database));
            List<ChangeConsumer.State> consumers = new ArrayList<>();
            while (from.hasMore()) {
                consumers.add(new ChangeConsumer.State(
                        from.takeText(), from.takeLong(), from.takeLong(), from.takeByte() == 1));
            }
            return consumers;
        });
    }

    /** Forgets the consumer {@code name}. What nobody else holds is removed. */
    public void removeConsumer(String name) {
        run(database -> Native.removeConsumer(database, name.getBytes(UTF_8)));
    }

    /**
     * Makes all writes durable and closes the database with all its objects. Later calls of them are errors, except of this
     * method. Calls that run in other threads end as the engine says: with their result, or with {@code CLOSED}.
     */
    @Override
    public void close() {
        if (handle.isClosed()) {
            return;
        }
        isClosing = true;
        // The close of the database would wait for their ends.
        open.stream().filter(Handle::isLoad).forEach(Handle::close);
        boolean isRefused = false;
        try {
            if (!isState) {
                run(Native::close);
            }
        } catch (WindrowException error) {
            // A thread of the engine cannot close its own database.
            isRefused = error.code() == ErrorCode.INVALID_ARGUMENT;
            isClosing = !isRefused;
            if (error.code() != ErrorCode.CLOSED || !handle.isClosed()) {
                throw error;
            }
        } finally {
            if (!isRefused) {
                closeObjects();
            }
        }
    }

    private void closeObjects() {
        handle.close();
        // Whoever opens an object now sees that the database is closed.
        while (!open.isEmpty()) {
            open.forEach(Handle::close);
        }
    }

    /** This thread begins, or ends, to run the source of a load. A close that has begun, or begins later, ends the load. */
    void loading(Handle load, int change) {
        loading.merge(Thread.currentThread(), change, (before, by) -> before + by == 0 ? null : before + by);
        if (isClosing) {
            load.close();
        }
    }

    Durability durability() {
        return durability;
    }

    /** The handle of a new object of this database. The caller has entered the handle of the database or of another object. */
    Handle handle(int kind, long address, String name) {
        Handle opened = new Handle(kind, address, name, open);
        if (handle.isClosed()) {
            opened.close();
        }
        return opened;
    }

    private <R> R call(Function<Long, R> call) {
        long database = handle.enter();
        try {
            return call.apply(database);
        } finally {
            handle.leave(this);
        }
    }

    private void run(Run call) {
        long database = handle.enter();
        try {
            call.on(database);
        } finally {
            handle.leave(this);
        }
    }

    private interface Run {
        void on(long database);
    }
}
