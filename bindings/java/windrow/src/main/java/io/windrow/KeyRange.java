package io.windrow;

import java.util.Arrays;
import java.util.Optional;

/** The keys from a start on and before an end, in the order of their unsigned bytes. */
public final class KeyRange {
    private static final KeyRange ALL = new KeyRange(null, null);

    /** Null for no bound. */
    final byte[] start;
    /** Null for no bound. */
    final byte[] end;

    private KeyRange(byte[] start, byte[] end) {
        this.start = start;
        this.end = end;
    }

    /** All keys. */
    public static KeyRange all() {
        return ALL;
    }

    /** The keys from {@code start} on. */
    public static KeyRange from(byte[] start) {
        return new KeyRange(start.clone(), null);
    }

    /** The keys before {@code end}. */
    public static KeyRange before(byte[] end) {
        return new KeyRange(null, end.clone());
    }

    /** The keys from {@code start} on and before {@code end}. Null is no bound. */
    public static KeyRange between(byte[] start, byte[] end) {
        return new KeyRange(start == null ? null : start.clone(), end == null ? null : end.clone());
    }

    /** The keys from {@code first} to {@code last}, both included. Null is no bound. */
    public static KeyRange closed(byte[] first, byte[] last) {
        return new KeyRange(first == null ? null : first.clone(), last == null ? null : after(last));
    }

    /** The keys that begin with {@code prefix}. */
    public static KeyRange prefix(byte[] prefix) {
        return new KeyRange(prefix.clone(), afterPrefix(prefix));
    }

    /** The least key that is in the range; nothing for no bound. */
    public Optional<byte[]> start() {
        return Optional.ofNullable(start).map(byte[]::clone);
    }

    /** The least key behind the range; nothing for no bound. */
    public Optional<byte[]> end() {
        return Optional.ofNullable(end).map(byte[]::clone);
    }

    /** The least key that is greater. */
    static byte[] after(byte[] key) {
        return Arrays.copyOf(key, key.length + 1);
    }

    /** The first key behind all with this prefix; null if there is none. */
    private static byte[] afterPrefix(byte[] prefix) {
        for (int last = prefix.length - 1; last >= 0; last--) {
            if (prefix[last] != (byte) 0xff) {
                byte[] end = Arrays.copyOf(prefix, last + 1);
                end[last]++;
                return end;
            }
        }
        return null;
    }
}
