package io.windrow.kafka.streams;

import static java.nio.charset.StandardCharsets.US_ASCII;

import io.windrow.Batch;
import io.windrow.Database;
import io.windrow.Durability;
import io.windrow.ErrorCode;
import io.windrow.KeyRange;
import io.windrow.Keyspace;
import io.windrow.Options;
import io.windrow.WindrowException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.streams.errors.ProcessorStateException;
import org.apache.kafka.streams.query.Position;
import org.apache.kafka.streams.state.internals.OffsetCheckpoint;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The database of one store. A commit is the only point of survival: it makes entries and offsets survive as one, and an
 * open after an unclean end has what the last commit has left, nothing that was written later and nothing less. Reads see all
 * writes at once.
 *
 * <p>A store to which nothing was ever written has no files. The folder of another one has two databases at most. {@code live}
 * is open. {@code committed} is a checkpoint, with hard links to the files that both have. Besides the entries, a database has
 * its state, with the number of the last commit, and what entries were before they were written since ({@link Undo}).
 *
 * <ul>
 *   <li>I1: While {@code committed} does not exist, {@code live} has a record of each key that was written since the last
 *       commit, in the same batch as the write. An open makes these keys what they were.
 *   <li>I2: While {@code committed} exists, it has the last commit in the same manner, and {@code live} has later writes
 *       without records. An open removes {@code live} and puts {@code committed} in its place, to which I1 applies.
 *   <li>I3: Before the first write without a record, {@code live} has a mark. If an open finds it and no {@code committed},
 *       then others have removed files: nothing of the store is used, and Kafka restores it.
 *   <li>I4: What is restored from a changelog is committed there. A batch that is restored when nothing is uncommitted is one
 *       write with its offset, and so a commit of its own; the next commit that is synced makes it durable.
 *   <li>I5: An offset is only recorded for entries: without a write since the open, no offset becomes larger.
 *   <li>I6: After a step has failed of which it is unknown whether it is durable, all writes and commits fail until an open.
 * </ul>
 *
 * <p>So a commit of few writes is one write, and one of many removes a folder. The checkpoint is made before the write of one
 * key too many for the records, and before a delete of a range.
 *
 * <p>Concurrency: the caller orders the writes and the commits. Any thread reads.
 */
final class StoreDatabase implements AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(StoreDatabase.class);
    private static final String LIVE = "live";
    private static final String COMMITTED = "committed";
    /** A checkpoint that is being made. */
    private static final String UNFINISHED = "unfinished";
    /** What does not count any more. */
    private static final String OBSOLETE = "obsolete";
    private static final byte[] STATE = "state".getBytes(US_ASCII);
    private static final byte[] MARK = "unrecorded".getBytes(US_ASCII);

    private final Path folder;
    private final Options options;
    private final StoreKind kind;
    /** Null until something is written to a store that has no files. */
    private Database database;
    /** As {@code database}. Readers see it without a lock. */
    private volatile Keyspace entries;
    private Keyspace states;
    private Undo undo;
    private State state;
    /** Whether a commit was ever recorded. */
    private boolean isRecorded;
    /** Whether there was a write since the open. */
    private boolean isWritten;
    /** Whether the last commit that is recorded may not be durable yet. */
    private boolean isUnsynced;
    /** Whether {@code committed} exists (I2). */
    private boolean hasCheckpoint;
    /** Whether {@code live} has the mark (I3). */
    private boolean isMarked;
    /** Why nothing can be written any more (I6). */
    private RuntimeException failure;

    /** Opens the database in {@code folder}, if there is one. */
    StoreDatabase(Path folder, Options options, StoreKind kind) {
        this.folder = folder;
        this.options = options;
        this.kind = kind;
        this.state = State.empty(kind);
        Folders.delete(folder.resolve(UNFINISHED));
        Folders.delete(folder.resolve(OBSOLETE));
        if (Files.exists(folder.resolve(COMMITTED))) {
            Folders.delete(folder.resolve(LIVE));
            Folders.rename(folder, COMMITTED, LIVE);
            Folders.sync(folder);
        }
        if (Files.exists(folder.resolve(LIVE))) {
            openExisting();
        }
    }

    private void openExisting() {
        try {
            open();
            byte[] recorded = states.getOrNull(STATE);
            State found = recorded == null ? state : State.fromBytes(recorded);
            if (states.contains(MARK)) {
                discard("others have removed a part of its files");
            } else if (!found.format().equals(kind.format())) {
                discard("its format is \"" + found.format() + "\" and \"" + kind.format() + "\" is wanted");
            } else {
                isRecorded = recorded != null;
                state = found;
                undo.rollBack(state.number());
            }
        } catch (WindrowException error) {
            if (error.code() != ErrorCode.CORRUPTION) {
                close();
                throw error;
            }
            discard("it is damaged: " + error.getMessage());
        } catch (RuntimeException error) {
            close();
            throw error;
        }
    }

    /** Begins without entries, so that Kafka restores the store. */
    private void discard(String reason) {
        close();
        if (!kind.isLogged()) {
            throw new ProcessorStateException("Store " + kind.name() + " in " + folder + " cannot be used, because " + reason
                    + "; it has no changelog from which it could be restored");
        }
        LOG.warn("Store {} in {} is restored from its changelog, because {}", kind.name(), folder, reason);
        database = null;
        entries = null;
        Folders.rename(folder, LIVE, OBSOLETE);
        Folders.sync(folder);
        Folders.delete(folder.resolve(OBSOLETE));
    }

    private void open() {
        Database opened = Database.open(folder.resolve(LIVE), options);
        try {
            states = opened.keyspace("state");
            Keyspace found = opened.keyspace("entries");
            undo = new Undo(opened, found);
            database = opened;
            entries = found;
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
        if (failure != null) {
            throw new ProcessorStateException("Store " + kind.name() + " must be opened again after a failure", failure);
        }
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
        Keyspace target = writable();
        isWritten = true;
        if (!hasCheckpoint && !undo.covers(key)) {
            if (undo.write(state.number(), key, value)) {
                return;
            }
            makeCheckpoint();
        }
        if (value == null) {
            target.delete(key);
        } else {
            target.put(key, value);
        }
    }

    void deleteRange(KeyRange range) {
        writable();
        isWritten = true;
        makeCheckpoint();
        entries.deleteRange(range);
    }

    /** Writes what was restored up to {@code offsets} (I4). */
    void restore(Batch batch, Map<TopicPartition, Long> offsets, Position position, long streamTime, int sequence) {
        writable();
        isWritten = true;
        if (hasUncommitted()) {
            makeCheckpoint();
            database.write(batch);
            return;
        }
        State after = state.committed(offsets, position, streamTime, sequence);
        batch.put(states, STATE, after.toBytes());
        database.write(batch);
        isUnsynced = true;
        recorded(after);
    }

    /**
     * Makes all writes so far and {@code offsets} survive, as one: a power failure, or if it need not be synced the end of the
     * process. A commit that removes a checkpoint is always synced.
     */
    void commit(Map<TopicPartition, Long> offsets, Position position, long streamTime, int sequence, boolean mustSync) {
        if (!isRecorded && !isWritten) {
            return;
        }
        writable();
        State after = state.committed(isWritten ? offsets : withoutRises(offsets), position, streamTime, sequence);
        if (isRecorded && !hasUncommitted() && after.equals(state)) {
            if (isUnsynced && mustSync) {
                database.persist();
                isUnsynced = false;
            }
            return;
        }
        after = after.next();
        Batch batch = new Batch().put(states, STATE, after.toBytes());
        if (isMarked) {
            batch.delete(states, MARK);
        }
        isUnsynced = !mustSync && !hasCheckpoint;
        if (isUnsynced) {
            database.write(batch);
        } else {
            database.write(batch, Durability.SYNC);
        }
        isMarked = false;
        recorded(after);
        if (hasCheckpoint) {
            // From this step on the live database counts.
            critical(() -> {
                Folders.delete(folder.resolve(OBSOLETE));
                Folders.rename(folder, COMMITTED, OBSOLETE);
                Folders.sync(folder);
            });
            hasCheckpoint = false;
            removeObsolete();
        }
        undo.committed(after.number());
    }

    /** Offsets that Kafka has from elsewhere, for example from stores of another kind, are not those of this one (I5). */
    private Map<TopicPartition, Long> withoutRises(Map<TopicPartition, Long> offsets) {
        Map<TopicPartition, Long> without = new HashMap<>(offsets);
        without.entrySet().removeIf(it -> {
            Long recorded = state.offsets().get(it.getKey());
            return it.getValue() != null && it.getValue() >= 0 && (recorded == null || it.getValue() > recorded);
        });
        return offsets.isEmpty() || !without.isEmpty() ? without : state.offsets();
    }

    private void recorded(State after) {
        state = after;
        isRecorded = true;
    }

    private boolean hasUncommitted() {
        return hasCheckpoint || (undo != null && !undo.isEmpty());
    }

    /** Makes the checkpoint, if it is missing: afterwards writes need no records (I2, I3). */
    private void makeCheckpoint() {
        if (!hasCheckpoint) {
            Folders.delete(folder.resolve(UNFINISHED));
            database.checkpoint(folder.resolve(UNFINISHED));
            critical(() -> {
                Folders.rename(folder, UNFINISHED, COMMITTED);
                Folders.sync(folder);
            });
            hasCheckpoint = true;
        }
        if (!isMarked) {
            states.put(MARK, new byte[0], Durability.SYNC);
            isMarked = true;
        }
    }

    private void critical(Runnable step) {
        try {
            step.run();
        } catch (RuntimeException error) {
            failure = error;
            throw error;
        }
    }

    /** What cannot be removed now is removed later. */
    private void removeObsolete() {
        try {
            Folders.delete(folder.resolve(OBSOLETE));
        } catch (RuntimeException error) {
            LOG.warn("A folder that is not needed any more could not be removed: {}", folder.resolve(OBSOLETE), error);
        }
    }

    /** Closes the database. What was not committed is gone at the next open. */
    @Override
    public void close() {
        if (database != null) {
            if (isWritten && isRecorded && failure == null && !hasUncommitted()) {
                compact();
            }
            database.close();
        }
    }

    /** After a clean end the database needs no records and no log. */
    private void compact() {
        try {
            undo.clear();
            database.flush();
        } catch (WindrowException error) {
            LOG.warn("Store {} in {} keeps its log", kind.name(), folder, error);
        }
    }
}
