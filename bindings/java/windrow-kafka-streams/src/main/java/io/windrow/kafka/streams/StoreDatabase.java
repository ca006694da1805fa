package io.windrow.kafka.streams;

import static java.nio.charset.StandardCharsets.US_ASCII;

import io.windrow.Batch;
import io.windrow.Database;
import io.windrow.Durability;
import io.windrow.Entries;
import io.windrow.Entry;
import io.windrow.KeyRange;
import io.windrow.Keyspace;
import io.windrow.Options;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.query.Position;
import org.apache.kafka.streams.state.internals.OffsetCheckpoint;

/**
 * The database of one store. A commit is the only point of durability: it makes entries and offsets durable as one, and an
 * open after an unclean end has what the last commit has left, nothing that was written later and nothing less. Reads see all
 * writes at once.
 *
 * <p>A store without entries has no files. The folder of another one has two databases at most. {@code live} is open.
 * {@code committed} is a checkpoint, with hard links to the files that both have. Besides the entries, a database has its
 * state, with the number of the last commit, and what entries were before they were written since ({@link Undo}).
 *
 * <ul>
 *   <li>I1: While {@code committed} does not exist, {@code live} has a record of each key that was written since the last
 *       commit, in the same batch as the write. An open makes these keys what they were.
 *   <li>I2: While {@code committed} exists, it has the last commit in the same manner, and {@code live} has later writes
 *       without records. An open removes {@code live} and puts {@code committed} in its place, to which I1 applies.
 *   <li>I3: What is restored from a changelog is committed there. A batch that is restored when nothing is uncommitted is one
 *       write with its offset, and so a commit of its own.
 * </ul>
 *
 * <p>So a commit of few writes is one write, and one of many removes a folder. The checkpoint is made before the write of one
 * key too many for the records, and before a delete of a range.
 *
 * <p>Concurrency: the caller orders the writes and the commits. Any thread reads.
 */
final class StoreDatabase implements AutoCloseable {
    private static final String LIVE = "live";
    private static final String COMMITTED = "committed";
    /** A checkpoint that is being made. */
    private static final String UNFINISHED = "unfinished";
    /** A checkpoint that does not count any more. */
    private static final String OBSOLETE = "obsolete";
    private static final byte[] STATE = "state".getBytes(US_ASCII);

    private final Path folder;
    private final Options options;
    /** Null until something is written to a store that has no files. */
    private Database database;
    /** As {@code database}. Readers see it without a lock. */
    private volatile Keyspace entries;
    private Keyspace states;
    private Undo undo;
    private State state;
    /** Whether a commit was ever recorded. */
    private boolean isRecorded;
    /** Whether this open has found no files. */
    private final boolean isNew;
    /** Whether {@code committed} exists (I2). */
    private boolean hasCheckpoint;

    /** Opens the database in {@code folder}, if there is one. Values of another format than {@code format} are removed. */
    StoreDatabase(Path folder, Options options, String format) {
        this.folder = folder;
        this.options = options;
        this.state = State.empty(format);
        Folders.delete(folder.resolve(UNFINISHED));
        Folders.delete(folder.resolve(OBSOLETE));
        if (Files.exists(folder.resolve(COMMITTED))) {
            Folders.delete(folder.resolve(LIVE));
            Folders.rename(folder, COMMITTED, LIVE);
        }
        isNew = !Files.exists(folder.resolve(LIVE));
        if (isNew) {
            return;
        }
        open();
        byte[] recorded = states.getOrNull(STATE);
        State found = recorded == null ? state : State.fromBytes(recorded);
        if (!found.format().equals(format)) {
            database.close();
            Folders.delete(folder.resolve(LIVE));
            open();
            return;
        }
        isRecorded = recorded != null;
        state = found;
        undo.rollBack(state.number());
    }

    private void open() {
        Folders.create(folder);
        database = Database.open(folder.resolve(LIVE), options);
        states = database.keyspace("state");
        Keyspace opened = database.keyspace("entries");
        undo = new Undo(database, opened);
        entries = opened;
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

    /**
     * The offset of the last commit. A database that an earlier process has left without one has no entries: its offset is
     * unknown, which is no damage.
     */
    Long committedOffset(TopicPartition partition) {
        if (!isRecorded && !isNew) {
            return OffsetCheckpoint.OFFSET_UNKNOWN;
        }
        return state.offsets().get(partition);
    }

    /** Sets the value of {@code key}, or removes it if {@code value} is null. */
    void put(byte[] key, byte[] value) {
        Keyspace target = writable();
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
        makeCheckpoint();
        entries.deleteRange(range);
    }

    /** Writes what was restored up to {@code offsets} (I3). */
    void restore(Batch batch, Map<TopicPartition, Long> offsets, Position position, long streamTime, int sequence) {
        if (hasUncommitted() || offsets.isEmpty()) {
            makeCheckpoint();
            database.write(batch);
            return;
        }
        State after = state.committed(offsets, position, streamTime, sequence);
        batch.put(states, STATE, after.toBytes());
        database.write(batch);
        recorded(after);
    }

    /** Makes all writes so far and {@code offsets} durable, as one. */
    void commit(Map<TopicPartition, Long> offsets, Position position, long streamTime, int sequence) {
        State after = state.committed(offsets, position, streamTime, sequence);
        if (!hasUncommitted() && after.equals(state) && (isRecorded || database == null)) {
            return;
        }
        writable();
        after = after.next();
        states.put(STATE, after.toBytes(), Durability.SYNC);
        recorded(after);
        undo.committed(after.number());
        if (hasCheckpoint) {
            // From this step on the live database counts.
            Folders.rename(folder, COMMITTED, OBSOLETE);
            hasCheckpoint = false;
            Folders.delete(folder.resolve(OBSOLETE));
        }
    }

    private void recorded(State after) {
        state = after;
        isRecorded = true;
    }

    private boolean hasUncommitted() {
        return hasCheckpoint || (undo != null && !undo.isEmpty());
    }

    /** Makes the checkpoint, if it is missing: afterwards writes need no records (I2). */
    private void makeCheckpoint() {
        if (hasCheckpoint) {
            return;
        }
        writable();
        Folders.delete(folder.resolve(UNFINISHED));
        database.checkpoint(folder.resolve(UNFINISHED));
        Folders.rename(folder, UNFINISHED, COMMITTED);
        hasCheckpoint = true;
    }

    /** Closes the database. What was not committed is gone at the next open. */
    @Override
    public void close() {
        if (database != null) {
            database.close();
        }
    }

    /**
     * What entries were before they were written since the last commit, in a keyspace of its own. The key of a record is the
     * number of that commit and the key of the entry. So a commit, which takes the next number, makes all records obsolete.
     */
    private static final class Undo {
        /** No more keys have records, and no more bytes of values. */
        private static final int KEYS_MAX = 10_000;
        private static final long BYTES_MAX = 4 << 20;
        /** Obsolete records are removed when there are so many. */
        private static final int OBSOLETE_MAX = 10_000;

        private static final byte ABSENT = 0;
        private static final byte PRESENT = 1;

        private final Database database;
        private final Keyspace entries;
        private final Keyspace records;
        /** The keys that have records. */
        private final Set<Bytes> keys = new HashSet<>();
        private long bytes;
        private int obsolete;

        Undo(Database database, Keyspace entries) {
            this.database = database;
            this.entries = entries;
            this.records = database.keyspace("undo");
        }

        boolean covers(byte[] key) {
            return keys.contains(Bytes.wrap(key));
        }

        boolean isEmpty() {
            return keys.isEmpty();
        }

        /** Writes an entry together with the record of what it was. Returns false if there would be too much on record. */
        boolean write(long commit, byte[] key, byte[] value) {
            byte[] old = entries.getOrNull(key);
            if (keys.size() >= KEYS_MAX || bytes + (old == null ? 0 : old.length) > BYTES_MAX) {
                return false;
            }
            byte[] record = new byte[old == null ? 1 : 1 + old.length];
            record[0] = old == null ? ABSENT : PRESENT;
            if (old != null) {
                System.arraycopy(old, 0, record, 1, old.length);
            }
            Batch batch = new Batch().put(records, Keys.ofSegment(commit, key), record);
            if (value == null) {
                batch.delete(entries, key);
            } else {
                batch.put(entries, key, value);
            }
            database.write(batch);
            keys.add(Bytes.wrap(key));
            bytes += key.length + record.length;
            return true;
        }

        /** All records so far are obsolete. */
        void committed(long commit) {
            obsolete += keys.size();
            keys.clear();
            bytes = 0;
            if (obsolete >= OBSOLETE_MAX) {
                records.deleteRange(KeyRange.before(Keys.segment(commit)));
                obsolete = 0;
            }
        }

        /** Makes entries what they were at a commit, and removes all records, as one write. */
        void rollBack(long commit) {
            if (records.first(KeyRange.all()).isEmpty()) {
                return;
            }
            Batch batch = new Batch();
            try (Entries found = records.entries(KeyRange.prefix(Keys.segment(commit)))) {
                while (found.hasNext()) {
                    Entry record = found.next();
                    byte[] key = Keys.withoutSegment(ByteBuffer.wrap(record.key()));
                    byte[] value = record.value();
                    if (value[0] == ABSENT) {
                        batch.delete(entries, key);
                    } else {
                        batch.put(entries, key, Arrays.copyOfRange(value, 1, value.length));
                    }
                }
            }
            batch.deleteRange(records, KeyRange.all());
            database.write(batch);
        }
    }
}
