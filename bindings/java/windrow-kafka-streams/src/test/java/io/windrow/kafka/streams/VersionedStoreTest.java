package io.windrow.kafka.streams;

import static io.windrow.kafka.streams.Contexts.key;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Random;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.internals.RecordHeaders;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.state.Stores;
import org.apache.kafka.streams.state.ValueAndTimestamp;
import org.apache.kafka.streams.state.VersionedBytesStore;
import org.apache.kafka.test.InternalMockProcessorContext;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Versioned stores answer as Kafka's on RocksDB: in random histories with late writes, deletes, and expired reads. */
class VersionedStoreTest {
    private static final Duration RETENTION = Duration.ofMinutes(2);
    private static final TopicPartition CHANGELOG = new TopicPartition("changelog", 0);

    @TempDir
    Path folder;

    private VersionedBytesStore open(VersionedBytesStore store, String name) {
        Path task = folder.resolve(name);
        assertTrue(task.toFile().isDirectory() || task.toFile().mkdirs());
        store.init(Contexts.in(task.toFile()), store);
        return store;
    }

    private static VersionedBytesStore own() {
        return (VersionedBytesStore) WindrowStores.versionedKeyValueStore("store", RETENTION).get();
    }

    private static String text(byte[] valueAndTimestamp) {
        return valueAndTimestamp == null ? "none" : java.util.Arrays.toString(valueAndTimestamp);
    }

    @ParameterizedTest
    @ValueSource(longs = {1, 2, 3, 4, 5, 6})
    void randomHistoriesAreEqual(long seed) {
        Random random = new Random(seed);
        VersionedBytesStore own = open(own(), "own");
        VersionedBytesStore rocks = open(
                (VersionedBytesStore) Stores.persistentVersionedKeyValueStore("store", RETENTION).get(), "rocks");
        long time = 0;
        for (int i = 0; i < 3_000; i++) {
            time += random.nextInt(2_000);
            Bytes key = key("k".repeat(1 + random.nextInt(4)));
            long at = Math.max(0, time - random.nextInt(200_000));
            byte[] value = random.nextInt(5) == 0 ? null : ("value " + i).getBytes();
            String step = "step " + i + " of seed " + seed;
            switch (random.nextInt(5)) {
                case 0, 1 -> assertEquals(rocks.put(key, value, at), own.put(key, value, at), step);
                case 2 -> assertEquals(text(rocks.delete(key, at)), text(own.delete(key, at)), step);
                case 3 -> assertEquals(text(rocks.get(key, at)), text(own.get(key, at)), step);
                default -> assertEquals(text(rocks.get(key)), text(own.get(key)), step);
            }
        }
        own.close();
        rocks.close();
    }

    /** Also what was restored answers equally. */
    @Test
    void restoredVersionsAreEqual() {
        Random random = new Random(9);
        VersionedBytesStore own = own();
        VersionedBytesStore rocks = (VersionedBytesStore) Stores.persistentVersionedKeyValueStore("store", RETENTION).get();
        List<ConsumerRecord<byte[], byte[]>> records = new ArrayList<>();
        long time = 0;
        for (int i = 0; i < 2_000; i++) {
            time += random.nextInt(1_000);
            byte[] value = random.nextInt(5) == 0 ? null : ("value " + i).getBytes();
            long at = Math.max(0, time - random.nextInt(150_000));
            records.add(new ConsumerRecord<>(
                    CHANGELOG.topic(), 0, i, at, TimestampType.CREATE_TIME, -1, -1,
                    ("k" + random.nextInt(5)).getBytes(), value, new RecordHeaders(), java.util.Optional.empty()));
        }
        for (VersionedBytesStore store : List.of(own, rocks)) {
            Path task = folder.resolve(store == own ? "own" : "rocks");
            assertTrue(task.toFile().mkdirs());
            InternalMockProcessorContext<Object, Object> context = Contexts.in(task.toFile());
            store.init(context, store);
            for (int from = 0; from < records.size(); from += 250) {
                context.restoreWithHeaders("store", records.subList(from, from + 250));
            }
        }
        for (int i = 0; i < 1_000; i++) {
            Bytes key = key("k" + random.nextInt(5));
            long at = time - random.nextInt(130_000);
            assertEquals(text(rocks.get(key, at)), text(own.get(key, at)));
        }
        own.close();
        rocks.close();
    }

    /** Keys that are written once and deleted leave nothing when their history is over. */
    @Test
    void deletedKeysAreForgotten() {
        WindrowVersionedStore store = new WindrowVersionedStore("store", RETENTION.toMillis());
        Path task = folder.resolve("own");
        assertTrue(task.toFile().mkdirs());
        store.init(Contexts.in(task.toFile()), store);
        for (int i = 0; i < 5_000; i++) {
            store.put(key("order " + i), new byte[] {1}, i * 100L);
            store.delete(key("order " + i), i * 100L + 50);
        }
        long live = 2 * RETENTION.toMillis() / 100;
        long entries = store.database().entries().count(io.windrow.KeyRange.all());
        assertTrue(entries < 2 * live, () -> entries + " entries, where " + live + " are in the history");
        store.close();
    }

    @Test
    void whatWasNotCommittedIsGone() {
        VersionedBytesStore store = open(own(), "own");
        store.put(key("a"), new byte[] {1}, 1_000);
        store.put(key("a"), new byte[] {2}, 2_000);
        store.commit(Map.of(CHANGELOG, 2L));
        store.put(key("a"), new byte[] {3}, 3_000);
        store.delete(key("a"), 1_500);
        store.put(key("a"), new byte[] {4}, 1_000_000);
        store.close();
        store = open(own(), "own");
        assertEquals(2_000, ValueAndTimestamps.timestamp(store.get(key("a"))));
        assertEquals(1_000, ValueAndTimestamps.timestamp(store.get(key("a"), 1_700)));
        store.close();
    }

    /** What came too late is in the changelog, too: a clean restart must not restore it. */
    @Test
    void theOffsetOfADroppedWriteCounts() {
        VersionedBytesStore store = open(own(), "own");
        store.put(key("a"), new byte[] {1}, 1_000_000);
        store.commit(Map.of(CHANGELOG, 1L));
        store.close();
        store = open(own(), "own");
        store.put(key("a"), new byte[] {2}, 0);
        store.commit(Map.of(CHANGELOG, 2L));
        store.close();
        store = open(own(), "own");
        assertEquals(2, store.committedOffset(CHANGELOG));
        store.delete(key("a"), 0);
        store.commit(Map.of(CHANGELOG, 3L));
        store.close();
        store = open(own(), "own");
        assertEquals(3, store.committedOffset(CHANGELOG));
        store.close();
    }

    private static final class ValueAndTimestamps {
        static long timestamp(byte[] bytes) {
            ValueAndTimestamp<byte[]> found = new org.apache.kafka.streams.state.internals.ValueAndTimestampSerde<>(
                    org.apache.kafka.common.serialization.Serdes.ByteArray()).deserializer().deserialize(null, bytes);
            return found.timestamp();
        }
    }
}
