package io.windrow;

/** What a caller can do about a {@link WindrowException}. */
public enum ErrorCode {
    /** Windrow has a bug, or the virtual machine refused a call of the library. */
    INTERNAL,
    /** The arguments or options of the call are wrong: correct the call. */
    INVALID_ARGUMENT,
    /** The database, keyspace or backup does not exist, or was dropped. */
    NOT_FOUND,
    /** The database exists already, or a folder is not empty. */
    ALREADY_EXISTS,
    /** This or another process has the database or the backups open. */
    LOCKED,
    /** The disk or a quota is full: nothing was lost; free space and try again. */
    NO_SPACE,
    /** The operating system reported an error. */
    IO,
    /** Stored bytes are damaged. The exception names the file and the offset if they are known. */
    CORRUPTION,
    /** The data needs a newer version of Windrow, or a feature that is off. */
    UNSUPPORTED,
    /** An earlier write or sync failed, and it is unknown what is durable: reopen the database. */
    POISONED,
    /** The database, or the object that was used, has been closed. */
    CLOSED,
    /** The database or the backups are open for reading only. */
    READ_ONLY,
    /** Another write came in between: nothing was written; try the transaction again. */
    CONFLICT,
    /** The transaction and others wait for each other's locks: roll it back and try it again. */
    DEADLOCK,
    /** A lock was not free in time: roll the transaction back and try it again. */
    TIMED_OUT,
    /** The operands of a key could not be folded. */
    MERGE,
    /** Changes that were asked for are not kept any more: begin again with a snapshot and the changes behind it. */
    FELL_BEHIND;

    private static final ErrorCode[] CODES = values();

    static ErrorCode of(int number) {
        return CODES[number];
    }
}
