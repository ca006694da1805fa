package io.windrow;

/** A state of the writes and locks of one transaction. */
public final class Savepoint {
    private final Transaction transaction;
    private final int number;

    Savepoint(Transaction transaction, int number) {
        this.transaction = transaction;
        this.number = number;
    }

    Transaction transaction() {
        return transaction;
    }

    int number() {
        return number;
    }
}
