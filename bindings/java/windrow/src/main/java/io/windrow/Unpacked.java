package io.windrow;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.time.Instant;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;

/** Takes the values of an array of the native library, one after the other. Numbers are little-endian. */
final class Unpacked {
    private final byte[] array;
    private int at;

    Unpacked(byte[] array) {
        this.array = array;
    }

    /** The texts that an array has. */
    static List<String> texts(byte[] array) {
        return new Unpacked(array).takeTexts();
    }

    /** The change that an array has. */
    static Change change(byte[] array) {
        Unpacked from = new Unpacked(array);
        int kind = from.takeByte();
        long sequence = from.takeLong();
        return switch (kind) {
            case 0 -> from.batch(sequence);
            case 1 -> new Change.KeyspaceCreated(sequence, from.takeText());
            case 2 -> new Change.KeyspaceDropped(sequence, from.takeText());
            case 3 -> new Change.KeyspaceRenamed(sequence, from.takeText(), from.takeText());
            default -> new Change.TablesAdded(sequence, from.takeTexts());
        };
    }

    private Change batch(long sequence) {
        long first = takeLong();
        List<String> names = texts(takeBytes());
        List<Write> writes = new ArrayList<>();
        while (hasMore()) {
            int kind = takeByte();
            String keyspace = names.get(takeInt());
            byte[] key = takeBytes();
            writes.add(switch (kind) {
                case 0 -> new Write.Put(keyspace, key, takeBytes(), Instant.MAX);
                case 1 -> new Write.Put(keyspace, key, takeBytes(), Instant.ofEpochMilli(takeLong()));
                case 2 -> new Write.Delete(keyspace, key);
                case 3 -> new Write.Merge(keyspace, key, takeBytes());
                case 4 -> new Write.DeleteRange(keyspace, KeyRange.between(key, takeBytes()));
                default -> new Write.DeleteRange(keyspace, KeyRange.from(key));
            });
        }
        return new Change.BatchWritten(first, sequence, Collections.unmodifiableList(writes));
    }

    boolean hasMore() {
        return at < array.length;
    }

    int takeByte() {
        return array[at++];
    }

    int takeInt() {
        at += 4;
        return Packed.intAt(array, at - 4);
    }

    long takeLong() {
        at += 8;
        return Packed.longAt(array, at - 8);
    }

    /** Bytes behind their length; null for the length -1. */
    byte[] takeBytes() {
        int length = takeInt();
        if (length < 0) {
            return null;
        }
        at += length;
        return Arrays.copyOfRange(array, at - length, at);
    }

    /** Values behind their lengths, all that are left. */
    List<byte[]> takeValues() {
        List<byte[]> values = new ArrayList<>();
        while (hasMore()) {
            values.add(takeBytes());
        }
        return values;
    }

    String takeText() {
        return new String(takeBytes(), UTF_8);
    }

    /** All that are left. */
    List<String> takeTexts() {
        List<String> texts = new ArrayList<>();
        while (hasMore()) {
            texts.add(takeText());
        }
        return Collections.unmodifiableList(texts);
    }
}
