package io.windrow.kafka.streams;

import io.windrow.Entries;
import io.windrow.Entry;
import io.windrow.ErrorCode;
import io.windrow.WindrowException;
import java.util.function.Supplier;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.errors.InvalidStateStoreException;
import org.apache.kafka.streams.errors.ProcessorStateException;
import org.apache.kafka.streams.state.KeyValueIterator;

/** The entries of a key-value store. */
final class EntryIterator implements KeyValueIterator<Bytes, byte[]> {
    private final String store;
    private final Entries entries;
    private boolean isClosed;

    EntryIterator(String store, Entries entries) {
        this.store = store;
        this.entries = entries;
    }

    @Override
    public boolean hasNext() {
        return call(entries::hasNext);
    }

    @Override
    public KeyValue<Bytes, byte[]> next() {
        Entry entry = call(entries::next);
        return KeyValue.pair(Bytes.wrap(Keys.decoded(entry.key())), entry.value());
    }

    @Override
    public Bytes peekNextKey() {
        return Bytes.wrap(Keys.decoded(call(entries::peekKey)));
    }

    @Override
    public void close() {
        isClosed = true;
        entries.close();
    }

    private <R> R call(Supplier<R> call) {
        if (isClosed) {
            throw new InvalidStateStoreException("The iterator of store " + store + " has been closed");
        }
        try {
            return call.get();
        } catch (WindrowException error) {
            if (error.code() == ErrorCode.CLOSED) {
                throw new InvalidStateStoreException("Store " + store + " is currently closed", error);
            }
            throw new ProcessorStateException("Error while reading store " + store, error);
        }
    }
}
