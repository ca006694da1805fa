package io.windrow;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.lang.ref.Cleaner;
import java.lang.ref.Reference;
import java.util.Set;
import java.util.concurrent.atomic.AtomicIntegerArray;

/**
 * The address of an object of the native library, and the calls that have it.
 *
 * <p>A call enters before it uses the address and leaves afterwards. A close refuses later calls. The object is freed once,
 * by the close or by the last call that leaves after it. So no call ever has the address of a freed object, whichever thread
 * closes.
 *
 * <p>Calls are counted in stripes, one for each of several groups of threads, so that threads which share a keyspace do not
 * write to one cache line. The object is freed when all stripes are zero after the close: a stripe that was seen as zero then
 * stays without users, because whoever counts there later sees the close and leaves at once.
 */
final class Handle {
    // The kinds, as the native library knows them.
    static final int DATABASE = 0;
    static final int KEYSPACE = 1;
    static final int VIEW = 2;
    static final int SNAPSHOT = 3;
    static final int CURSOR = 4;
    static final int TRANSACTION = 5;
    static final int EVENTS = 6;
    static final int LOAD = 7;
    static final int CHANGES = 8;
    static final int CONSUMER = 9;
    static final int SECONDARY = 10;
    static final int PERSIST = 11;

    /** So many counters are in one cache line. */
    private static final int LINE = 16;
    private static final int STRIPES = Math.min(16, Integer.highestOneBit(Runtime.getRuntime().availableProcessors() * 2 - 1));
    private static final Cleaner CLEANER = Cleaner.create();
    private static final VarHandle FREED;

    static {
        try {
            FREED = MethodHandles.lookup().findVarHandle(Handle.class, "freed", boolean.class);
        } catch (ReflectiveOperationException error) {
            throw new ExceptionInInitializerError(error);
        }
    }

    private final int kind;
    private final long address;
    private final String name;
    /** The open handles of the database; null for that of the database. */
    private final Set<Handle> open;
    private final AtomicIntegerArray users;
    private final int mask;
    private volatile boolean closed;
    @SuppressWarnings("unused")
    private volatile boolean freed;
    private volatile Cleaner.Cleanable cleanable;

    Handle(int kind, long address, String name, Set<Handle> open) {
        this.kind = kind;
        this.address = address;
        this.name = name;
        this.open = open;
        int stripes = kind <= SNAPSHOT ? STRIPES : 1;
        this.mask = stripes - 1;
        this.users = new AtomicIntegerArray(stripes == 1 ? 1 : stripes * LINE);
        if (open != null) {
            open.add(this);
        }
    }

    /** Closes this when {@code owner} is unreachable. */
    void closeWith(Object owner) {
        cleanable = CLEANER.register(owner, this::end);
    }

    /** The address, until {@link #leave} is called by the same thread. */
    long enter() {
        users.getAndIncrement(stripe());
        if (closed) {
            leave(this);
            throw closedException();
        }
        return address;
    }

    /** Ends the call. Until then {@code owner}, whose handle this is, counts as in use: the garbage collector closes nothing. */
    void leave(Object owner) {
        users.getAndDecrement(stripe());
        if (closed) {
            freeIfUnused();
        }
        Reference.reachabilityFence(owner);
    }

    boolean isLoad() {
        return kind == LOAD;
    }

    boolean isClosed() {
        return closed;
    }

    void check() {
        if (closed) {
            throw closedException();
        }
    }

    /** Refuses later calls, and frees the object as soon as no call has it. Later closes do nothing. */
    void close() {
        Cleaner.Cleanable registered = cleanable;
        if (registered != null) {
            registered.clean();
        } else {
            end();
        }
    }

    private void end() {
        closed = true;
        if (open != null) {
            open.remove(this);
        }
        freeIfUnused();
    }

    private void freeIfUnused() {
        for (int stripe = 0; stripe < users.length(); stripe += LINE) {
            if (users.get(stripe) != 0) {
                return;
            }
        }
        if (FREED.compareAndSet(this, false, true)) {
            Native.free(kind, address);
        }
    }

    /** The same one in each call of a thread. */
    private int stripe() {
        return mask == 0 ? 0 : (System.identityHashCode(Thread.currentThread()) & mask) * LINE;
    }

    private WindrowException closedException() {
        return new WindrowException(ErrorCode.CLOSED, "the " + name + " has been closed");
    }
}
