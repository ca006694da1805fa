package io.windrow.kafka.streams.endtoend;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.kafka.common.utils.Utils;

/** What each copy of the application should have written, by a plain computation. */
final class Expected {
    private record Event(String key, String value, long time) {}

    private final int partitions;
    /** In the order in which they were written. */
    private final List<Event> events = new ArrayList<>();
    private final List<Event> orders = new ArrayList<>();
    private final Map<String, String> customers = new HashMap<>();

    Expected(int partitions) {
        this.partitions = partitions;
    }

    void event(String key, String value, long time) {
        events.add(new Event(key, value, time));
    }

    /** An order without a value deletes the one before. */
    void order(String key, String value, long time) {
        orders.add(new Event(key, value, time));
    }

    void customer(String key, String value) {
        customers.put(key, value);
    }

    int size() {
        return events.size() + orders.size();
    }

    /** The results of each topic. */
    Map<String, Map<String, String>> results() {
        Map<String, Map<String, String>> results = new TreeMap<>();
        results.put(Topologies.COUNTS, counts());
        results.put(Topologies.WINDOWS, windows());
        results.put(Topologies.SESSIONS, sessions());
        results.put(Topologies.JOINED, joined());
        results.put(Topologies.FOREIGN, foreign());
        results.put(Topologies.PAIRS, pairs());
        results.put(Topologies.VERSIONS, versions());
        return results;
    }

    private static Map<String, List<Event>> byKey(List<Event> events) {
        Map<String, List<Event>> byKey = new TreeMap<>();
        events.forEach(it -> byKey.computeIfAbsent(it.key, key -> new ArrayList<>()).add(it));
        return byKey;
    }

    private Map<String, String> counts() {
        Map<String, String> counts = new TreeMap<>();
        byKey(events).forEach((key, of) -> counts.put(key, String.valueOf(of.size())));
        return counts;
    }

    private Map<String, String> joined() {
        Map<String, String> joined = new TreeMap<>();
        byKey(events).forEach((key, of) -> joined.put(key, of.get(of.size() - 1).value + " of " + of.size()));
        return joined;
    }

    private Map<String, String> windows() {
        long size = Topologies.WINDOW.toMillis();
        Map<String, Integer> windows = new TreeMap<>();
        events.forEach(it -> windows.merge(it.key + "@" + it.time / size * size, 1, Integer::sum));
        Map<String, String> texts = new TreeMap<>();
        windows.forEach((key, count) -> texts.put(key, String.valueOf(count)));
        return texts;
    }

    private Map<String, String> sessions() {
        Map<String, String> sessions = new TreeMap<>();
        byKey(events).forEach((key, of) -> {
            List<Long> times = new ArrayList<>(of.stream().map(Event::time).toList());
            Collections.sort(times);
            for (int first = 0; first < times.size(); ) {
                int end = first + 1;
                while (end < times.size() && times.get(end) - times.get(end - 1) <= Topologies.GAP.toMillis()) {
                    end++;
                }
                sessions.put(key + "@" + times.get(first) + "-" + times.get(end - 1), String.valueOf(end - first));
                first = end;
            }
        });
        return sessions;
    }

    private Map<String, String> foreign() {
        Map<String, String> foreign = new TreeMap<>();
        byKey(orders).forEach((key, of) -> {
            String order = of.get(of.size() - 1).value;
            if (order != null) {
                foreign.put(key, order + " for " + customers.get(Topologies.customer(order)));
            }
        });
        return foreign;
    }

    /** All pairs of an event and an order that are near each other. A pair that comes twice would be seen as well. */
    private Map<String, String> pairs() {
        Map<String, List<Event>> ordersByKey = byKey(orders);
        Map<String, String> pairs = new TreeMap<>();
        for (Event event : events) {
            for (Event order : ordersByKey.getOrDefault(event.key, List.of())) {
                if (order.value != null && Math.abs(event.time - order.time) <= Topologies.NEAR.toMillis()) {
                    pairs.put(Topologies.pair(event.value, order.value), "1");
                }
            }
        }
        return pairs;
    }

    private Map<String, String> versions() {
        long history = Versions.HISTORY.toMillis();
        Map<Integer, Long> streamTimes = new HashMap<>();
        Map<String, TreeMap<Long, String>> versions = new HashMap<>();
        Map<String, String> found = new TreeMap<>();
        for (Event event : events) {
            int partition = Utils.toPositive(Utils.murmur2(event.key.getBytes(StandardCharsets.UTF_8))) % partitions;
            TreeMap<Long, String> of = versions.computeIfAbsent(event.key, it -> new TreeMap<>());
            long streamTime = streamTimes.getOrDefault(partition, -1L);
            if (event.time >= streamTime - history) {
                streamTime = Math.max(streamTime, event.time);
                streamTimes.put(partition, streamTime);
                of.put(event.time, Versions.deletes(event.value) ? "" : event.value);
            }
            long asked = Versions.asked(event.value, event.time);
            Map.Entry<Long, String> version = of.floorEntry(asked);
            boolean isKnown = version != null && (asked >= streamTime - history || version.getKey().equals(of.lastKey()));
            found.put(event.value, isKnown && !version.getValue().isEmpty() ? version.getValue() : Versions.NONE);
        }
        return found;
    }
}
