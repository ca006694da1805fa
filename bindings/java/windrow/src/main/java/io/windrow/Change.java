package io.windrow;

import java.util.List;

/** A change of a database; see {@link Changes}. */
public sealed interface Change {
    /** The number of the change; of a batch, that of its last write. Who has done with the change acknowledges it. */
    long sequence();

    /**
     * Writes that were committed together: one batch, or several that were in one group.
     *
     * @param firstSequence the number of the first write
     */
    record BatchWritten(long firstSequence, long sequence, List<Write> writes) implements Change {}

    /** A keyspace was created. */
    record KeyspaceCreated(long sequence, String name) implements Change {}

    /** A keyspace was dropped, with all that earlier batches have written to it. */
    record KeyspaceDropped(long sequence, String name) implements Change {}

    /** A keyspace has another name. If another keyspace had it, that one now has the old name of this one. */
    record KeyspaceRenamed(long sequence, String from, String to) implements Change {}

    /**
     * A bulk load has added tables, whose entries do not come. A copy takes these keyspaces from a snapshot, and goes on
     * behind it.
     *
     * @param keyspaces none if no consumer holds the change: then they are not known, or the load has failed
     */
    record TablesAdded(long sequence, List<String> keyspaces) implements Change {}
}
