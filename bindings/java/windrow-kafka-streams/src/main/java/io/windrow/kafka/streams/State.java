package io.windrow.kafka.streams;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.util.HashMap;
import java.util.Map;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.streams.query.Position;
import org.apache.kafka.streams.state.internals.PositionSerde;

/**
 * What belongs to the entries of a store at one moment, and is recorded with them.
 *
 * @param format what the values are; entries of another format are not used
 * @param interval of the segments of the keys, in milliseconds; 0 if there are none
 * @param offsets of each changelog, the offset of the last record that the entries contain
 * @param position the offsets of the input that the entries contain, for queries
 * @param streamTime the greatest timestamp so far; -1 for none
 * @param sequence the last number that made the key of a duplicate unique
 */
record State(
        String format,
        long interval,
        Map<TopicPartition, Long> offsets,
        Position position,
        long streamTime,
        int sequence) {
    private static final int VERSION = 2;
    private static final long NO_TIMESTAMP = -1;

    /** The state of a store without entries. */
    static State empty(StoreKind kind) {
        return new State(kind.format(), kind.interval(), Map.of(), Position.emptyPosition(), NO_TIMESTAMP, 0);
    }

    /**
     * The state after a commit of {@code changes}: an empty map removes all offsets, and null removes one, as Kafka wants it.
     */
    State committed(Map<TopicPartition, Long> changes, Position position, long streamTime, int sequence) {
        Map<TopicPartition, Long> after = new HashMap<>();
        if (!changes.isEmpty()) {
            after.putAll(offsets);
            changes.forEach((partition, offset) -> {
                if (offset == null) {
                    after.remove(partition);
                } else {
                    after.put(partition, offset);
                }
            });
        }
        return new State(format, interval, Map.copyOf(after), position.copy(), streamTime, sequence);
    }

    byte[] toBytes() {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        try (DataOutputStream to = new DataOutputStream(bytes)) {
            to.writeByte(VERSION);
            to.writeUTF(format);
            to.writeLong(interval);
            to.writeLong(streamTime);
            to.writeInt(sequence);
            to.writeInt(offsets.size());
            for (Map.Entry<TopicPartition, Long> offset : offsets.entrySet()) {
                to.writeUTF(offset.getKey().topic());
                to.writeInt(offset.getKey().partition());
                to.writeLong(offset.getValue());
            }
            ByteBuffer packed = PositionSerde.serialize(position);
            to.write(packed.array(), packed.arrayOffset() + packed.position(), packed.remaining());
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
        return bytes.toByteArray();
    }

    static State fromBytes(byte[] bytes) {
        try (DataInputStream from = new DataInputStream(new ByteArrayInputStream(bytes))) {
            int version = from.readByte();
            if (version != VERSION) {
                throw new IOException("the state of the store has version " + version + ", and this one knows " + VERSION);
            }
            String format = from.readUTF();
            long interval = from.readLong();
            long streamTime = from.readLong();
            int sequence = from.readInt();
            Map<TopicPartition, Long> offsets = new HashMap<>();
            for (int left = from.readInt(); left > 0; left--) {
                offsets.put(new TopicPartition(from.readUTF(), from.readInt()), from.readLong());
            }
            Position position = PositionSerde.deserialize(ByteBuffer.wrap(from.readAllBytes()));
            return new State(format, interval, Map.copyOf(offsets), position, streamTime, sequence);
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }
}
