package io.windrow.kafka.streams.endtoend;

import io.windrow.kafka.streams.StoreContents;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.TopicPartition;

/**
 * Compares the stores of an application with their changelogs, while it does not run. A store on disk is what the committed
 * records of its changelog make up to the offset that is on disk with it: all entries, and no other ones.
 */
final class Changelogs {
    private final Cluster cluster;
    private final String application;
    private final Map<TopicPartition, List<ConsumerRecord<byte[], byte[]>>> read = new HashMap<>();
    private final Map<String, Long> retentions = new HashMap<>();
    /** The greatest offset that some store has. */
    private final Map<TopicPartition, Long> contained = new HashMap<>();
    private int stores;
    private int entries;

    Changelogs(Cluster cluster, String application) {
        this.cluster = cluster;
        this.application = application;
    }

    /** Compares all stores in the folder of an instance. */
    void compare(Path state) throws Exception {
        Path folder = state.resolve(application);
        if (!Files.exists(folder)) {
            return;
        }
        for (Path task : folders(folder)) {
            if (Files.exists(task.resolve("windrow"))) {
                for (Path store : folders(task.resolve("windrow"))) {
                    compareStore(store);
                }
            }
        }
    }

    private static List<Path> folders(Path folder) throws IOException {
        try (Stream<Path> found = Files.list(folder)) {
            return found.filter(Files::isDirectory).sorted().toList();
        }
    }

    private void compareStore(Path folder) throws Exception {
        if (!Files.exists(folder.resolve("CURRENT"))) {
            // It was killed before its database was there.
            return;
        }
        StoreContents store = StoreContents.read(folder);
        StoreModel model = new StoreModel(store.format(), store.changelog() == null ? 0 : retention(store.changelog().topic()));
        if (store.offset() >= 0) {
            contained.merge(store.changelog(), store.offset(), Math::max);
            records(store.changelog(), store.offset()).stream().filter(it -> it.offset() <= store.offset()).forEach(model::add);
        }
        String difference = model.difference(store.entries());
        if (difference != null) {
            throw new AssertionError("the store in " + folder + " is not as " + store.changelog() + " up to offset "
                    + store.offset() + ": " + difference);
        }
        stores++;
        entries += store.entries().size();
    }

    private long retention(String topic) throws Exception {
        Long known = retentions.get(topic);
        if (known == null) {
            known = cluster.retention(topic);
            retentions.put(topic, known);
        }
        return known;
    }

    /** The committed records of a changelog, up to {@code offset} at least. */
    private List<ConsumerRecord<byte[], byte[]>> records(TopicPartition changelog, long offset) throws Exception {
        List<ConsumerRecord<byte[], byte[]>> known = read.get(changelog);
        if (known == null || known.isEmpty() || known.get(known.size() - 1).offset() < offset) {
            known = cluster.committed(changelog, offset);
            read.put(changelog, known);
        }
        return known;
    }

    /** There was something to compare. */
    void checkAny() {
        if (stores == 0 || entries == 0) {
            throw new AssertionError("there are no stores, or nothing is in them: " + this);
        }
    }

    /** After a clean end some store has each record. */
    void checkComplete() throws Exception {
        List<TopicPartition> all = new ArrayList<>(contained.keySet());
        cluster.partitions(cluster.changelogs(application)).stream().filter(it -> !contained.containsKey(it)).forEach(all::add);
        for (TopicPartition changelog : all.stream().sorted(Comparator.comparing(TopicPartition::toString)).toList()) {
            long has = contained.getOrDefault(changelog, -1L);
            List<Long> missing = cluster.committed(changelog, has).stream().map(ConsumerRecord::offset)
                    .filter(it -> it > has).collect(Collectors.toList());
            if (!missing.isEmpty()) {
                throw new AssertionError("no store has the records of " + changelog + " from offset " + missing.get(0) + " to "
                        + missing.get(missing.size() - 1));
            }
        }
    }

    @Override
    public String toString() {
        return stores + " stores are as their changelogs, with " + entries + " entries";
    }
}
