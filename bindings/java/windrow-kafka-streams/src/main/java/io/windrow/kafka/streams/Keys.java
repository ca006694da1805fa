package io.windrow.kafka.streams;

import io.windrow.Batch;
import io.windrow.Keyspace;
import java.nio.ByteBuffer;
import java.util.Arrays;
import org.apache.kafka.common.utils.Bytes;

/**
 * Keys of Kafka as keys of Windrow, which are not empty: a key that is empty or begins with a zero gets a zero in front. The
 * order stays the same.
 */
final class Keys {
    private Keys() {}

    static byte[] encoded(byte[] key) {
        if (key.length > 0 && key[0] != 0) {
            return key;
        }
        byte[] encoded = new byte[key.length + 1];
        System.arraycopy(key, 0, encoded, 1, key.length);
        return encoded;
    }

    static byte[] decoded(byte[] key) {
        return key[0] == 0 ? Arrays.copyOfRange(key, 1, key.length) : key;
    }

    /** Adds a put to a batch, or a delete if {@code value} is null. */
    static void add(Batch batch, Keyspace entries, byte[] key, byte[] value) {
        if (value == null) {
            batch.delete(entries, key);
        } else {
            batch.put(entries, key, value);
        }
    }

    /** The number of a segment as the beginning of a key. */
    static byte[] segment(long segment) {
        return ByteBuffer.allocate(Long.BYTES).putLong(segment).array();
    }

    /** A key of a segment. */
    static byte[] ofSegment(long segment, byte[] key) {
        return ByteBuffer.allocate(Long.BYTES + key.length).putLong(segment).put(key).array();
    }

    static long segmentOf(ByteBuffer stored) {
        return stored.getLong(stored.position());
    }

    /** A key of a segment without its beginning. */
    static byte[] withoutSegment(ByteBuffer stored) {
        byte[] key = new byte[stored.remaining() - Long.BYTES];
        stored.get(stored.position() + Long.BYTES, key);
        return key;
    }

    /**
     * A bound that no key up to {@code last} exceeds, with any suffix up to {@code suffixMax} behind the key: the greatest of
     * all beginnings of {@code last} with this suffix.
     */
    static byte[] upperBound(Bytes last, byte[] suffixMax) {
        byte[] key = last.get();
        byte[] bound = suffixMax;
        for (int length = 1; length <= key.length; length++) {
            byte[] candidate = Arrays.copyOf(key, length + suffixMax.length);
            System.arraycopy(suffixMax, 0, candidate, length, suffixMax.length);
            if (Arrays.compareUnsigned(candidate, bound) > 0) {
                bound = candidate;
            }
        }
        return bound;
    }
}
