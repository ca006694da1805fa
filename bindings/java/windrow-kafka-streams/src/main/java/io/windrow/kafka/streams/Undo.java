package io.windrow.kafka.streams;

import io.windrow.Batch;
import io.windrow.Database;
import io.windrow.Entries;
import io.windrow.Entry;
import io.windrow.KeyRange;
import io.windrow.Keyspace;
import io.windrow.KeyspaceOptions;
import io.windrow.WindrowException;
import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.HashSet;
import java.util.Set;
import org.apache.kafka.common.utils.Bytes;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * What entries were before they were written since the last commit, in a keyspace of its own. The key of a record is the
 * number of that commit and the key of the entry. So a commit, which takes the next number, makes all records obsolete.
 *
 * <p>Concurrency: the caller orders all calls.
 */
final class Undo {
    private static final Logger LOG = LoggerFactory.getLogger(Undo.class);
    /** No more keys have records, and no more bytes of values. */
    private static final int KEYS_MAX = 4_000;
    private static final long BYTES_MAX = 2 << 20;
    /** Most records are obsolete before they leave memory. */
    private static final long MEMTABLE_BYTES = 512 << 10;
    /** Obsolete records are removed when there are so many. */
    private static final int OBSOLETE_MAX = 4_000;

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
        this.records = database.keyspace("undo", new KeyspaceOptions().memtableBytes(MEMTABLE_BYTES));
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

    /** All records so far are obsolete. Some of them are removed later: this never fails. */
    void committed(long commit) {
        obsolete += keys.size();
        keys.clear();
        bytes = 0;
        if (obsolete >= OBSOLETE_MAX) {
            try {
                records.deleteRange(KeyRange.before(Keys.segment(commit)));
                obsolete = 0;
            } catch (WindrowException error) {
                LOG.warn("Records that are not needed any more could not be removed", error);
            }
        }
    }

    /** Removes all records, because nothing is uncommitted. */
    void clear() {
        records.deleteRange(KeyRange.all());
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
