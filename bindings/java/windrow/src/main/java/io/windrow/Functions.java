package io.windrow;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.nio.ByteBuffer;
import java.util.Collections;
import java.util.List;
import java.util.Objects;

/**
 * What the native library calls, from any thread. Nothing is thrown into it: the first byte of a result says what it is, and
 * a failure is a sentence.
 */
final class Functions {
    // The first bytes, as the native library knows them.
    static final byte VALUE = 0;
    static final byte NOTHING = 1;
    static final byte REMOVAL = 2;
    private static final byte FAILED = 3;

    private Functions() {}

    @SuppressWarnings("unused")
    private static byte[] merge(MergeOperator operator, byte[] key, byte[] base, byte[] operands) {
        ByteBuffer scratch = Scratch.setAside();
        try {
            return value(Objects.requireNonNull(operator.merge(key, base, list(operands)), "the operator has returned null"));
        } catch (Throwable thrown) {
            return failed(thrown);
        } finally {
            Scratch.restore(scratch);
        }
    }

    @SuppressWarnings("unused")
    private static byte[] partialMerge(MergeOperator operator, byte[] key, byte[] operands) {
        ByteBuffer scratch = Scratch.setAside();
        try {
            byte[] operand = operator.partialMerge(key, list(operands));
            return operand == null ? new byte[] {NOTHING} : value(operand);
        } catch (Throwable thrown) {
            return failed(thrown);
        } finally {
            Scratch.restore(scratch);
        }
    }

    @SuppressWarnings("unused")
    private static byte[] decide(CompactionFilter filter, byte[] key, long valueBytes, long expiry, long address) {
        Candidate candidate = null;
        ByteBuffer scratch = Scratch.setAside();
        try {
            candidate = new Candidate(key, valueBytes, expiry, address);
            return filter.decide(candidate).packed;
        } catch (Throwable thrown) {
            return failed(thrown);
        } finally {
            if (candidate != null) {
                candidate.end();
            }
            Scratch.restore(scratch);
        }
    }

    static byte[] value(byte[] value) {
        byte[] packed = new byte[1 + value.length];
        packed[0] = VALUE;
        System.arraycopy(value, 0, packed, 1, value.length);
        return packed;
    }

    private static byte[] failed(Throwable thrown) {
        String text;
        try {
            text = thrown.toString();
        } catch (Throwable again) {
            text = thrown.getClass().getName();
        }
        byte[] sentence = text.getBytes(UTF_8);
        byte[] packed = value(sentence);
        packed[0] = FAILED;
        return packed;
    }

    private static List<byte[]> list(byte[] operands) {
        return Collections.unmodifiableList(new Unpacked(operands).takeValues());
    }
}
