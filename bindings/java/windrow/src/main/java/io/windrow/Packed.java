package io.windrow;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Arrays;

/** Values one after the other in one array, for the native library. Numbers are little-endian. */
final class Packed {
    private static final VarHandle INT = MethodHandles.byteArrayViewVarHandle(int[].class, ByteOrder.LITTLE_ENDIAN);
    private static final VarHandle LONG = MethodHandles.byteArrayViewVarHandle(long[].class, ByteOrder.LITTLE_ENDIAN);

    private byte[] array;
    private int length;

    Packed(int capacity) {
        array = new byte[capacity];
    }

    static int intAt(byte[] array, int offset) {
        return (int) INT.get(array, offset);
    }

    static long longAt(byte[] array, int offset) {
        return (long) LONG.get(array, offset);
    }

    /** The array; only {@link #length} bytes of it count. */
    byte[] array() {
        return array;
    }

    int length() {
        return length;
    }

    byte[] toArray() {
        return Arrays.copyOf(array, length);
    }

    /** Forgets what was added after the array had this length. */
    void truncate(int length) {
        this.length = length;
    }

    Packed add(int value) {
        grow(1);
        array[length++] = (byte) value;
        return this;
    }

    Packed addInt(int value) {
        grow(4);
        INT.set(array, length, value);
        length += 4;
        return this;
    }

    Packed addLong(long value) {
        grow(8);
        LONG.set(array, length, value);
        length += 8;
        return this;
    }

    /** Adds bytes behind their length. */
    Packed addBytes(byte[] bytes) {
        grow(Integer.BYTES + (long) bytes.length);
        INT.set(array, length, bytes.length);
        System.arraycopy(bytes, 0, array, length + Integer.BYTES, bytes.length);
        length += Integer.BYTES + bytes.length;
        return this;
    }

    /** Adds the bytes between position and limit behind their length. The buffer does not change. */
    Packed addBytes(ByteBuffer bytes) {
        int added = bytes.remaining();
        grow(Integer.BYTES + (long) added);
        INT.set(array, length, added);
        bytes.get(bytes.position(), array, length + Integer.BYTES, added);
        length += Integer.BYTES + added;
        return this;
    }

    Packed addText(String text) {
        return addBytes(text.getBytes(UTF_8));
    }

    private void grow(long bytes) {
        if (array.length - length >= bytes) {
            return;
        }
        long wanted = Math.max(length + bytes, Math.min(2L * array.length, Integer.MAX_VALUE - 8));
        if (wanted > Integer.MAX_VALUE - 8) {
            throw new WindrowException(ErrorCode.INVALID_ARGUMENT, "a batch has at most 2 GiB");
        }
        array = Arrays.copyOf(array, (int) wanted);
    }
}
