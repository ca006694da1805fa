package io.windrow;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;

/**
 * Memory of a thread, through which the bytes of a caller's buffers go to the native library and come from it. The memory of a
 * buffer may be gone, or go away at any time, with its arena: Java's copies see that, and the library could not.
 */
final class Scratch {
    /** The native library has the same number. */
    static final int BYTES = 16 << 10;

    /** In front of the bytes is their address. The library of Java alone has the class, so that no thread keeps this package. */
    private static final ThreadLocal<ByteBuffer> OF_THREAD = new ThreadLocal<>();

    private Scratch() {}

    /** That of this thread. The thread keeps it. */
    static ByteBuffer get() {
        ByteBuffer scratch = OF_THREAD.get();
        if (scratch == null) {
            scratch = ByteBuffer.allocateDirect(Long.BYTES + BYTES).order(ByteOrder.nativeOrder());
            scratch.putLong(0, Native.addressOf(scratch) + Long.BYTES);
            OF_THREAD.set(scratch);
        }
        return scratch;
    }

    /** Takes the memory from this thread: what a call back into Java does may not change what the outer call has there. */
    static ByteBuffer setAside() {
        ByteBuffer scratch = OF_THREAD.get();
        if (scratch != null) {
            OF_THREAD.remove();
        }
        return scratch;
    }

    /** Gives back what was set aside. */
    static void restore(ByteBuffer scratch) {
        if (scratch != null) {
            OF_THREAD.set(scratch);
        }
    }

    /** The address of the bytes. */
    static long address(ByteBuffer scratch) {
        return scratch.getLong(0);
    }

    /** Copies so many bytes from the position of a buffer, which does not change. */
    static void fill(ByteBuffer scratch, int start, ByteBuffer buffer, int bytes) {
        scratch.put(Long.BYTES + start, buffer, buffer.position(), bytes);
    }

    /** Copies so many bytes from the start to the position of a buffer, which moves behind them. */
    static void take(ByteBuffer scratch, ByteBuffer target, int bytes) {
        target.put(target.position(), scratch, Long.BYTES, bytes);
        target.position(target.position() + bytes);
    }
}
