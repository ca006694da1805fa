package io.windrow.kafka.streams;

import io.windrow.Batch;
import io.windrow.ErrorCode;
import io.windrow.Keyspace;
import io.windrow.WindrowException;
import io.windrow.kafka.streams.ProducerWatch.End;
import java.io.UncheckedIOException;
import java.nio.file.Path;
import java.util.Collection;
import java.util.HashMap;
import java.util.Map;
import java.util.Set;
import java.util.function.Supplier;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.StreamsConfig.InternalConfig;
import org.apache.kafka.streams.errors.InvalidStateStoreException;
import org.apache.kafka.streams.errors.ProcessorStateException;
import org.apache.kafka.streams.errors.TaskCorruptedException;
import org.apache.kafka.streams.errors.TaskMigratedException;
import org.apache.kafka.streams.processor.StateStore;
import org.apache.kafka.streams.processor.StateStoreContext;
import org.apache.kafka.streams.processor.TaskId;
import org.apache.kafka.streams.processor.internals.ChangelogRecordDeserializationHelper;
import org.apache.kafka.streams.processor.internals.InternalProcessorContext;
import org.apache.kafka.streams.processor.internals.RecordBatchingStateRestoreCallback;
import org.apache.kafka.streams.processor.internals.RecordCollector;
import org.apache.kafka.streams.query.Position;
import org.apache.kafka.streams.query.PositionBound;
import org.apache.kafka.streams.query.Query;
import org.apache.kafka.streams.query.QueryConfig;
import org.apache.kafka.streams.query.QueryResult;
import org.apache.kafka.streams.state.internals.CacheFlushListener;
import org.apache.kafka.streams.state.internals.CachedStateStore;
import org.apache.kafka.streams.state.internals.StoreQueryUtils;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * What all stores have in common: the database, its commits, restores and queries.
 *
 * <p>All files of a store are in the folder {@code windrow/NAME} of its task. The lock of the store orders writes and commits.
 * Reads take no lock.
 */
abstract class AbstractStore implements StateStore, CachedStateStore<byte[], byte[]> {
    private static final Logger LOG = LoggerFactory.getLogger(AbstractStore.class);
    private static final String FOLDER = "windrow";

    private final String name;
    private final String format;
    private final long interval;
    /** Of what the store has now. An open makes a new one, because what was not committed is gone. */
    private volatile Position position = Position.emptyPosition();
    private boolean isConsistent;
    private volatile boolean isOpen;
    private StateStoreContext context;
    /** Null while the store is closed. */
    private StoreMetrics metrics;
    private volatile StoreDatabase database;
    /** Null if Kafka tells the store of each commit. */
    private TransactionWatch transactions;
    private boolean isExactlyOnce;
    /** The collector that {@code transactions} was made for. */
    private RecordCollector watched;

    /** A store whose values have this format, and whose keys have segments of this interval, 0 for none. */
    AbstractStore(String name, String format, long interval) {
        this.name = name;
        this.format = format;
        this.interval = interval;
    }

    @Override
    public String name() {
        return name;
    }

    @Override
    public void init(StateStoreContext context, StateStore root) {
        this.context = context;
        Map<String, Object> configuration = context.appConfigs();
        isConsistent = InternalConfig.getBoolean(configuration, InternalConfig.IQ_CONSISTENCY_OFFSET_VECTOR_ENABLED, false);
        open();
        if (root != null) {
            context.register(root, (RecordBatchingStateRestoreCallback) this::restore);
        }
    }

    private void open() {
        Path folder = context.stateDir().toPath().resolve(FOLDER).resolve(name);
        TaskId task = context.taskId();
        boolean isGlobal = task.subtopology() < 0;
        boolean isLogged = isGlobal || !(context instanceof InternalProcessorContext<?, ?> known) || known.changelogFor(name) != null;
        Settings settings;
        try {
            settings = Settings.of(context.appConfigs());
            isExactlyOnce = StreamsConfig.EXACTLY_ONCE_V2.equals(
                    context.appConfigs().get(StreamsConfig.PROCESSING_GUARANTEE_CONFIG));
            StoreKind kind = new StoreKind(name, format, interval, isLogged, isGlobal, isLogged || isExactlyOnce);
            database = new StoreDatabase(folder, settings, kind);
        } catch (RuntimeException error) {
            throw new ProcessorStateException("Error opening store " + name + " at location " + folder, error);
        }
        try {
            position = database.state().position().copy();
            opened(database.state());
            transactions = null;
            watched = null;
            watch();
            metrics = new StoreMetrics(context, metricsScope(), name, settings.cacheBytes(), () -> database.statistics());
        } catch (RuntimeException error) {
            database.close();
            throw error;
        }
        isOpen = true;
    }

    /** What kind of store this is, in the names of metrics. */
    abstract String metricsScope();

    /** The database was opened, with this state. */
    abstract void opened(State state);

    /** Adds what a record of the changelog means for the store, whose entries are {@code entries}. */
    abstract void restore(ConsumerRecord<byte[], byte[]> record, Batch batch, Keyspace entries);

    /** The greatest timestamp so far. */
    abstract long streamTime();

    /** The last number that made the key of a duplicate unique. */
    abstract int sequence();

    /** The records are about to be restored; what is added to the batch comes before them. */
    void restoring(Collection<ConsumerRecord<byte[], byte[]>> records, Batch batch, Keyspace entries) {}

    /** Kafka restores a store also after a close. Then it is open again. */
    private synchronized void restore(Collection<ConsumerRecord<byte[], byte[]>> records) {
        if (!isOpen) {
            open();
        }
        if (records.isEmpty()) {
            return;
        }
        Batch batch = new Batch();
        Keyspace entries = call(database::writable);
        Map<TopicPartition, Long> offsets = new HashMap<>();
        long bytes = 0;
        restoring(records, batch, entries);
        synchronized (position) {
            for (ConsumerRecord<byte[], byte[]> record : records) {
                restore(record, batch, entries);
                ChangelogRecordDeserializationHelper.applyChecksAndUpdatePosition(record, isConsistent, position);
                offsets.put(new TopicPartition(record.topic(), record.partition()), record.offset());
                bytes += record.key().length + (record.value() == null ? 0 : record.value().length);
            }
            long restored = bytes;
            run(() -> database.restore(batch, restored, offsets, position, streamTime(), sequence()));
        }
    }

    /**
     * Watches the transactions of the producer that the task has now. A standby has none, and when it becomes active it keeps its
     * stores, and the other way round: there is no other call that says so. The caller has the lock of the store.
     */
    private void watch() {
        if (!isExactlyOnce) {
            return;
        }
        RecordCollector collector = TransactionWatch.collectorOf(context);
        if (collector == watched) {
            return;
        }
        if (transactions != null) {
            if (collector == null && transactions.mustAgree() && database.hasUncommitted()) {
                // A standby has nothing but its changelog, and these writes may not be in it.
                throw new TaskCorruptedException(Set.of(context.taskId()));
            }
            transactions.forget();
        }
        watched = collector;
        transactions = TransactionWatch.of(context, name);
        if (transactions != null && database.hasUncommitted()) {
            transactions.distrust();
        }
    }

    /** A write is about to begin. The caller has the lock of the store. */
    final void beforeWrite() {
        checkOpen();
        watch();
        if (transactions != null) {
            look();
            transactions.begin();
        }
    }

    /**
     * Looks how the transaction of the last writes has ended.
     *
     * <p>Kafka lets a task live on if the transaction of its thread is aborted because of another task, in the middle of a
     * rebalance. Then the inputs of the aborted transaction count as read with the next one. What Kafka does when a thread has lost
     * all its tasks is right for that, unless the next transaction is committed already: it aborts, restores all, and reads what was
     * not committed again. So each store of the thread says it, whichever has the aborted writes. A corrupted task would be wrong:
     * Kafka commits the transaction of the others first, and in it half of what this task does now.
     */
    private void look() {
        End end = transactions.look();
        String lost = transactions.lostStore();
        if (lost != null) {
            throw new TaskMigratedException("The transaction with the last writes of store " + lost + " was aborted");
        }
        if (end == End.COMMITTED && database.hasUncommitted()) {
            Map<TopicPartition, Long> offsets = transactions.offsets(position, database.state().offsets());
            if (offsets != null) {
                run(() -> database.commitSeen(offsets, position, streamTime(), sequence()));
            }
        }
    }

    /** Kafka is about to commit the transaction of the task. It says so to all stores that are behind no cache of its own. */
    @Override
    public synchronized void flushCache() {
        if (isOpen && transactions != null) {
            look();
        }
    }

    @Override
    public boolean setFlushListener(CacheFlushListener<byte[], byte[]> listener, boolean sendOldValues) {
        return false;
    }

    @Override
    public void clearCache() {}

    /** A write left no entry, because it came too late. The caller has the lock of the store. */
    final void drop() {
        run(database::drop);
    }

    /** Runs a write, and notes the record that has caused it. The caller has the lock of the store. */
    final void write(Runnable write) {
        synchronized (position) {
            run(write);
            StoreQueryUtils.updatePosition(position, context);
        }
    }

    @Override
    public synchronized void commit(Map<TopicPartition, Long> changelogOffsets) {
        if (!isOpen) {
            return;
        }
        watch();
        if (transactions == null) {
            run(() -> database.commit(changelogOffsets, position, streamTime(), sequence()));
            return;
        }
        // Kafka also asks for a commit before it wipes a task whose transaction has failed.
        if (database.hasUncommitted() && transactions.mustAgree() && transactions.look() != End.COMMITTED) {
            LOG.warn("Store {} stays at its last commit, because the transaction with its last writes is not committed", name);
            return;
        }
        Map<TopicPartition, Long> offsets = transactions.corrected(changelogOffsets, position, database.state().offsets());
        run(() -> database.commit(offsets, position, streamTime(), sequence()));
        transactions.forget();
    }

    @Override
    public Long committedOffset(TopicPartition partition) {
        checkOpen();
        return database.committedOffset(partition);
    }

    @Override
    @SuppressWarnings("deprecation")
    public boolean managesOffsets() {
        return true;
    }

    @Override
    public synchronized void close() {
        if (isOpen) {
            isOpen = false;
            if (transactions != null) {
                transactions.forget();
            }
            try {
                metrics.close();
            } finally {
                run(database::close);
            }
        }
    }

    @Override
    public boolean persistent() {
        return true;
    }

    @Override
    public boolean isOpen() {
        return isOpen;
    }

    @Override
    public Position getPosition() {
        return position;
    }

    @Override
    public <R> QueryResult<R> query(Query<R> query, PositionBound bound, QueryConfig configuration) {
        return StoreQueryUtils.handleBasicQueries(query, bound, configuration, this, position, context);
    }

    /** The answer to a query that Kafka's own code does not know for this store. */
    final <R> QueryResult<R> answered(PositionBound bound, QueryConfig configuration, Supplier<R> answer) {
        long start = System.nanoTime();
        Position now = position;
        synchronized (now) {
            int partition = context.taskId().partition();
            QueryResult<R> result = StoreQueryUtils.isPermitted(now, bound, partition)
                    ? QueryResult.forResult(answer.get())
                    : QueryResult.notUpToBound(now, bound, partition);
            if (configuration.isCollectExecutionInfo()) {
                result.addExecutionInfo("Handled in " + getClass() + " in " + (System.nanoTime() - start) + "ns");
            }
            result.setPosition(now.copy());
            return result;
        }
    }

    final StoreDatabase database() {
        return database;
    }

    final StateStoreContext context() {
        return context;
    }

    final void checkOpen() {
        if (!isOpen) {
            throw new InvalidStateStoreException("Store " + name + " is currently closed");
        }
    }

    private void run(Runnable call) {
        call(() -> {
            call.run();
            return null;
        });
    }

    /** Runs a call of the database. */
    final <R> R call(Supplier<R> call) {
        try {
            return call.get();
        } catch (WindrowException error) {
            if (error.code() == ErrorCode.CLOSED) {
                throw new InvalidStateStoreException("Store " + name + " is currently closed", error);
            }
            throw new ProcessorStateException("Error in store " + name + ": " + error.getMessage(), error);
        } catch (UncheckedIOException error) {
            throw new ProcessorStateException("Error in store " + name, error);
        }
    }
}
