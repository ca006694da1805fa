package io.windrow;

import java.util.Objects;

/** What becomes of an entry about which a {@link CompactionFilter} decides. */
public final class Decision {
    private static final Decision KEEP = new Decision(new byte[] {Functions.NOTHING});
    private static final Decision REMOVE = new Decision(new byte[] {Functions.REMOVAL});

    /** As the native library has it. */
    final byte[] packed;

    private Decision(byte[] packed) {
        this.packed = packed;
    }

    /** It stays as it is. */
    public static Decision keep() {
        return KEEP;
    }

    /** It is removed. */
    public static Decision remove() {
        return REMOVE;
    }

    /** It gets another value, and expires when the value before would have. */
    public static Decision replace(byte[] value) {
        return new Decision(Functions.value(Objects.requireNonNull(value, "value")));
    }
}
