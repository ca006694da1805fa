package io.windrow.kafka.streams;

import static java.nio.charset.StandardCharsets.US_ASCII;

import io.windrow.Batch;
import io.windrow.Database;
import io.windrow.ErrorCode;
import io.windrow.KeyRange;
import io.windrow.Keyspace;
import io.windrow.PendingPersist;
import io.windrow.WindrowException;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.utils.Utils;
import org.apache.kafka.streams.errors.ProcessorStateException;
import org.apache.kafka.streams.query.Position;
import org.apache.kafka.streams.state.internals.OffsetCheckpoint;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The database of one store: its entries, and the {@link State} that belongs to them. It has no log. So a persist is the only
 * point of survival: whatever ends the process, an open has what the last persist had, nothing that was written later and
 * nothing less. Reads see all writes at once.
 *
 * <p>A commit says that all writes so far belong together with an offset. It need not be persisted at once:
 *
 * <ul>
 *   <li>One that Kafka makes of what it has processed is persisted.
 *   <li>One that Kafka makes while it restores is persisted when it is due: when as many bytes were restored as sixteen
 *       memtables have, or at the next of its {@link PersistTimes}. With exactly-once, Kafka commits all restoring tasks and standbys ten times
 *       a second, and a persist costs several syncs. What is lost is restored again.
 *   <li>One that is seen between two writes is persisted when it is due, too, but one memtable is enough. The next such moment
 *       comes soon.
 *   <li>What is left of a restore begins to be persisted before the first write that follows, and what is left of any commit is
 *       persisted at a close.
 * </ul>
 *
 * <p>A persist that was due, or comes before a write, only begins: the thread of Kafka goes on while the database flushes and syncs.
 * The next persist, a commit of what it has and the close wait for its end. The others have ended when the call returns.
 *
 * <p>Invariants:
 *
 * <ul>
 *   <li>I1: A persist has all that is in the database when it begins. So none begins while there are writes since the last commit.
 *   <li>I2: The state is written immediately before each persist. So what survives is a state with its entries.
 *   <li>I3: An offset is only recorded for entries: without a write since the open, none changes.
 * </ul>
 *
 * <p>A store to which nothing was ever written has no files.
 *
 * <p>Concurrency: the caller orders the writes and the commits. Any thread reads.
 */
final class StoreDatabase implements AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(StoreDatabase.class);
    private static final byte[] STATE = "state".getBytes(US_ASCII);
    /** What was restored waits longer: a persist lets the restore wait, too, and what is lost is restored again. */
    private static final int RESTORED_MEMTABLES = 16;

    /** The file that every database has. */
    private static final String CURRENT = "CURRENT";

    private final Path folder;
    private final Settings settings;
    private final StoreKind kind;
    private final PersistTimes times;
    /** Null until something is written to a store that has no files. */
    private Database database;
    /** As {@code database}. Readers see it without a lock. */
    private volatile Keyspace entries;
    private Keyspace states;
    /** That of the last commit. */
    private State state;
    /** Whether there ever was a commit. */
    private boolean isRecorded;
    /** Whether there was a write since the open. */
    private boolean isWritten;
    /** Whether there were writes since the last commit. */
    private boolean hasUncommitted;
    /** Whether there were writes or commits since the last persist. */
    private boolean hasUnpersisted;
    /** Whether some of the writes since the last persist were no restores. */
    private boolean hasProcessed;
    /** The bytes of the writes since the last persist. */
    private long unpersistedBytes;
    /** The last persist, until it is known how it has ended; else null. */
    private PendingPersist pending;
    /** Whether some of its writes were no restores. */
    private boolean isProcessedPending;
    private long dueAt;

    /** Opens the database in {@code folder}, if there is one. */
    StoreDatabase(Path folder, Settings settings, StoreKind kind) {
        this.folder = folder;
        this.settings = settings;
        this.kind = kind;
        this.times = new PersistTimes(settings.persistInterval(), folder.toString());
        this.dueAt = times.after(System.nanoTime());
        this.state = State.empty(kind);
        if (Files.exists(folder)) {
            openExisting();
        }
    }

    private void openExisting() {
        try {
            open();
            byte[] recorded = states.getOrNull(STATE);
            State found = recorded == null ? state : State.fromBytes(recorded);
            if (found.format().equals(kind.format())) {
                isRecorded = recorded != null;
                state = found;
            } else {
                discard("its format is \"" + found.format() + "\" and \"" + kind.format() + "\" is wanted", kind.isLogged());
            }
        } catch (WindrowException error) {
            boolean isOfOthers = error.code() == ErrorCode.INVALID_ARGUMENT && !Files.exists(folder.resolve(CURRENT));
            if (error.code() != ErrorCode.CORRUPTION && !isOfOthers) {
                close();
                throw error;
            }
            discard((isOfOthers ? "it has other files: " : "it is damaged: ") + error.getMessage(), kind.isExpendable());
        } catch (UncheckedIOException error) {
            discard("its state cannot be read: " + error.getMessage(), kind.isExpendable());
        } catch (RuntimeException error) {
            close();
            throw error;
        }
    }

    /** Begins without entries, so that Kafka restores the store. */
    private void discard(String reason, boolean isAllowed) {
        close();
        if (!isAllowed) {
            throw new ProcessorStateException("Store " + kind.name() + " in " + folder + " cannot be used, because " + reason
                    + "; it has no changelog from which it could be restored");
        }
        LOG.warn("Store {} in {} begins without entries, because {}", kind.name(), folder, reason);
        database = null;
        entries = null;
        try {
            // What a crash leaves of it is discarded by the next open.
            Utils.delete(folder.toFile());
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }

    private void open() {
        Database opened = Database.open(folder, settings.options());
        try {
            states = opened.keyspace("state");
            entries = opened.keyspace("entries");
            database = opened;
        } catch (RuntimeException error) {
            opened.close();
            throw error;
        }
    }

    /** The entries for readers; null if there are none, and no files. */
    Keyspace entries() {
        return entries;
    }

    /** The entries for batches, which this class writes. Creates the database if there is none. */
    Keyspace writable() {
        if (database == null) {
            open();
        }
        return entries;
    }

    /** The state of the last commit. */
    State state() {
        return state;
    }

    /** Statistics of the database as JSON; null if there are no files. */
    String statistics() {
        return database == null ? null : database.statistics();
    }

    /** The offset of the last commit. That of a store that was never committed is unknown, which is no damage. */
    Long committedOffset(TopicPartition partition) {
        Long offset = isRecorded ? state.offsets().get(partition) : Long.valueOf(OffsetCheckpoint.OFFSET_UNKNOWN);
        return kind.isGlobal() && offset != null && offset < 0 ? null : offset;
    }

    /** Sets the value of {@code key}, or removes it if {@code value} is null. */
    void put(byte[] key, byte[] value) {
        beforeProcessed();
        if (value == null) {
            noteWrite(key.length);
            entries.delete(key);
        } else {
            noteWrite(key.length + value.length);
            entries.put(key, value);
        }
    }

    void deleteRange(KeyRange range) {
        beforeProcessed();
        noteWrite(0);
        entries.deleteRange(range);
    }

    /** Something was written that leaves no entry: what is committed next contains it all the same. */
    void drop() {
        beforeProcessed();
        noteWrite(0);
    }

    /** Something is written that is no restore. */
    private void beforeProcessed() {
        writable();
        if (hasUnpersisted && !hasUncommitted && !hasProcessed) {
            beginPersist();
        }
        hasProcessed = true;
        hasUncommitted = true;
    }

    private void noteWrite(long bytes) {
        isWritten = true;
        hasUnpersisted = true;
        unpersistedBytes += bytes;
    }

    /** Writes what was restored up to {@code offsets}, and commits it if there is nothing else to commit. */
    void restore(Batch batch, long bytes, Map<TopicPartition, Long> offsets, Position position, long streamTime, int sequence) {
        writable();
        noteWrite(bytes);
        database.write(batch);
        if (!hasUncommitted) {
            committed(state.committed(offsets, position, streamTime, sequence));
            // Kafka commits no global store until all of it is restored.
            beginIfDue();
        }
    }

    /** A commit of Kafka: all writes so far, and {@code offsets}. */
    void commit(Map<TopicPartition, Long> offsets, Position position, long streamTime, int sequence) {
        if (!isRecorded && !isWritten) {
            return;
        }
        State after = state.committed(isWritten ? offsets : withoutForeign(offsets), position, streamTime, sequence);
        boolean isRestored = isRecorded && !hasProcessed && after.equals(state);
        committed(after);
        if (!isRestored) {
            persist();
            return;
        }
        if (isProcessedPending) {
            awaitPersist();
        }
        beginIfDue();
    }

    /** A commit that was seen between two writes: all writes so far, and {@code offsets}. */
    void commitSeen(Map<TopicPartition, Long> offsets, Position position, long streamTime, int sequence) {
        committed(state.committed(offsets, position, streamTime, sequence));
        beginIfDue();
    }

    /** Offsets that Kafka has from elsewhere, for example from stores of another kind, are not those of this one (I3). */
    private Map<TopicPartition, Long> withoutForeign(Map<TopicPartition, Long> offsets) {
        Map<TopicPartition, Long> without = new HashMap<>(offsets);
        without.entrySet().removeIf(it -> {
            Long recorded = state.offsets().get(it.getKey());
            return it.getValue() != null && it.getValue() >= 0 && !it.getValue().equals(recorded);
        });
        return offsets.isEmpty() || !without.isEmpty() ? without : state.offsets();
    }

    private void committed(State after) {
        state = after;
        isRecorded = true;
        hasUncommitted = false;
    }

    /** Whether there were writes since the last commit. */
    boolean hasUncommitted() {
        return hasUncommitted;
    }

    private void beginIfDue() {
        long bytesMax = settings.memtableBytes() * (hasProcessed ? 1 : RESTORED_MEMTABLES);
        if (hasUnpersisted && (unpersistedBytes >= bytesMax || System.nanoTime() - dueAt >= 0)) {
            beginPersist();
        }
    }

    /** Begins to make the last commit survive, after which there were no writes (I1, I2). */
    private void beginPersist() {
        awaitPersist();
        hasUnpersisted = true;
        states.put(STATE, state.toBytes());
        pending = database.beginPersist();
        isProcessedPending = hasProcessed;
        hasUnpersisted = false;
        hasProcessed = false;
        unpersistedBytes = 0;
        dueAt = times.after(System.nanoTime());
    }

    /** Waits for the end of the last persist. */
    private void awaitPersist() {
        if (pending == null) {
            return;
        }
        try (PendingPersist ending = pending) {
            pending = null;
            isProcessedPending = false;
            ending.await();
        } catch (RuntimeException error) {
            // The one before counts: what this one had is to be persisted at once with the next commit.
            hasUnpersisted = true;
            hasProcessed = true;
            throw error;
        }
    }

    /** As {@link #beginPersist}, and waits for the end. It has all that an earlier one had, which may have failed. */
    private void persist() {
        endPersist();
        beginPersist();
        awaitPersist();
    }

    /** Waits for the end of the last persist; a failure is only reported in the log. */
    private void endPersist() {
        try {
            awaitPersist();
        } catch (WindrowException error) {
            LOG.warn("Store {} in {} could not persist its last commit", kind.name(), folder, error);
        }
    }

    /** Closes the database. What was not committed is gone at the next open. */
    @Override
    public void close() {
        if (database == null) {
            return;
        }
        try {
            endPersist();
            if (hasUnpersisted && !hasUncommitted) {
                persist();
            }
        } catch (WindrowException error) {
            LOG.warn("Store {} in {} goes back to an earlier commit", kind.name(), folder, error);
        } finally {
            database.close();
        }
    }
}
