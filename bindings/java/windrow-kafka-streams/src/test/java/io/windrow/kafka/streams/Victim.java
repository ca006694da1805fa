package io.windrow.kafka.streams;

import static io.windrow.kafka.streams.Contexts.key;

import java.io.File;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.state.KeyValueIterator;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.WindowStore;
import org.apache.kafka.test.InternalMockProcessorContext;

/**
 * A process that writes to stores until it is killed. Step by step it does what a model does, too, and commits now and then the
 * number of its last step as the offset.
 */
final class Victim {
    static final TopicPartition CHANGELOG = new TopicPartition("changelog", 0);
    private static final Duration RETENTION = Duration.ofMinutes(10);
    /** A commit of a restore is due several times in each life. */
    private static final Map<String, String> SETTINGS =
            Map.of(Settings.MEMTABLE_BYTES, "65536", Settings.PERSIST_INTERVAL, "100");
    private static final int MANY_OF_A_STEP = 60;
    private static final int MANY_KEYS = 50_000;

    final KeyValueStore<Bytes, byte[]> counts = WindrowStores.keyValueStore("counts").get();
    final WindowStore<Bytes, byte[]> windows =
            WindrowStores.windowStore("windows", RETENTION, Duration.ofMinutes(1), true).get();

    /** More is written between two commits than fits into a memtable, most often. */
    final KeyValueStore<Bytes, byte[]> many = WindrowStores.keyValueStore("many").get();

    /** It restores what is put into the counts. Not each of its commits is persisted. */
    final KeyValueStore<Bytes, byte[]> restored = WindrowStores.keyValueStore("restored").get();
    private final InternalMockProcessorContext<Object, Object> restoring;

    private Victim(File folder) {
        restoring = Contexts.in(folder, SETTINGS);
        restored.init(restoring, restored);
        many.init(Contexts.in(folder, SETTINGS), many);
        counts.init(Contexts.in(folder, SETTINGS), counts);
        windows.init(Contexts.in(folder, SETTINGS), windows);
    }

    static Victim in(File folder) {
        return new Victim(folder);
    }

    /** Its arguments: a folder, and a seed. It prints the number of each commit before and after it. */
    public static void main(String[] arguments) {
        Victim victim = in(new File(arguments[0]));
        Random random = new Random(Long.parseLong(arguments[1]));
        int next = (int) victim.last(victim.restored.committedOffset(CHANGELOG)) + 1;
        for (int step = (int) victim.last(victim.counts.committedOffset(CHANGELOG)) + 1; ; step++) {
            for (; next <= step; next++) {
                victim.restore(next);
            }
            Change change = Change.of(step);
            victim.counts.put(key(change.key), change.value);
            victim.windows.put(key(change.key), ByteBuffer.allocate(4).putInt(step).array(), change.time);
            for (int i = 0; i < MANY_OF_A_STEP; i++) {
                victim.many.put(manyKey(step, i), ByteBuffer.allocate(4).putInt(step).array());
            }
            if (random.nextInt(200) == 0) {
                System.out.println("begins " + step);
                victim.counts.commit(Map.of(CHANGELOG, (long) step));
                victim.windows.commit(Map.of(CHANGELOG, (long) step));
                victim.many.commit(Map.of(CHANGELOG, (long) step));
                victim.restored.commit(Map.of(CHANGELOG, (long) step));
                System.out.println("committed " + step);
            }
        }
    }

    private void restore(int step) {
        Change change = Change.of(step);
        restoring.restoreWithHeaders("restored", List.of(new ConsumerRecord<>(
                CHANGELOG.topic(), CHANGELOG.partition(), step, key(change.key).get(), change.value)));
    }

    long last(Long offset) {
        return offset == null || offset < 0 ? -1 : offset;
    }

    /** What a step writes. */
    private record Change(String key, byte[] value, long time) {
        static Change of(int step) {
            Random random = new Random(step);
            String key = "key " + random.nextInt(300);
            byte[] value = random.nextInt(4) == 0 ? null : ("value " + step + " ".repeat(random.nextInt(500))).getBytes();
            return new Change(key, value, step * 500L);
        }
    }

    /** What the key-value store has after a step. */
    static Map<String, String> model(long last) {
        Map<String, String> model = new TreeMap<>();
        for (int step = 0; step <= last; step++) {
            Change change = Change.of(step);
            if (change.value == null) {
                model.remove(change.key);
            } else {
                model.put(change.key, new String(change.value));
            }
        }
        return model;
    }

    static Map<String, String> contents(KeyValueStore<Bytes, byte[]> store) {
        Map<String, String> contents = new TreeMap<>();
        try (KeyValueIterator<Bytes, byte[]> all = store.all()) {
            all.forEachRemaining(it -> contents.put(new String(it.key.get()), new String(it.value)));
        }
        return contents;
    }

    /** The steps whose windows have not expired after a step. */
    static java.util.Set<Integer> windowModel(long last) {
        java.util.Set<Integer> steps = new java.util.TreeSet<>();
        for (int step = 0; step <= last; step++) {
            if (step * 500L > last * 500L - RETENTION.toMillis()) {
                steps.add(step);
            }
        }
        return steps;
    }

    java.util.Set<Integer> windowContents() {
        java.util.Set<Integer> steps = new java.util.TreeSet<>();
        try (KeyValueIterator<?, byte[]> all = windows.all()) {
            while (all.hasNext()) {
                KeyValue<?, byte[]> entry = all.next();
                steps.add(ByteBuffer.wrap(entry.value).getInt());
            }
        }
        return steps;
    }

    private static Bytes manyKey(int step, int i) {
        return key("many " + (step * MANY_OF_A_STEP + i) * 7919L % MANY_KEYS);
    }

    /** The last step that has written each of the many keys. */
    static Map<Bytes, Integer> manyModel(long last) {
        Map<Bytes, Integer> model = new TreeMap<>();
        for (int step = 0; step <= last; step++) {
            for (int i = 0; i < MANY_OF_A_STEP; i++) {
                model.put(manyKey(step, i), step);
            }
        }
        return model;
    }

    Map<Bytes, Integer> manyContents() {
        Map<Bytes, Integer> contents = new TreeMap<>();
        try (KeyValueIterator<Bytes, byte[]> all = many.all()) {
            all.forEachRemaining(it -> contents.put(it.key, ByteBuffer.wrap(it.value).getInt()));
        }
        return contents;
    }

    void close() {
        restored.close();
        many.close();
        counts.close();
        windows.close();
    }
}
