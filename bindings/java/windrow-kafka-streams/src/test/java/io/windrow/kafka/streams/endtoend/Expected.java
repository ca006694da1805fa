package io.windrow.kafka.streams.endtoend;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/** What the application should have written, by a plain computation. */
final class Expected {
    private record Event(String value, long time) {}

    private final Map<String, List<Event>> events = new TreeMap<>();
    private int size;

    void add(String key, String value, long time) {
        events.computeIfAbsent(key, it -> new ArrayList<>()).add(new Event(value, time));
        size++;
    }

    int size() {
        return size;
    }

    Map<String, String> counts() {
        Map<String, String> counts = new TreeMap<>();
        events.forEach((key, of) -> counts.put(key, String.valueOf(of.size())));
        return counts;
    }

    Map<String, String> joined() {
        Map<String, String> joined = new TreeMap<>();
        events.forEach((key, of) -> joined.put(key, of.get(of.size() - 1).value + " of " + of.size()));
        return joined;
    }

    Map<String, String> windows() {
        long size = Application.WINDOW.toMillis();
        Map<String, Integer> windows = new TreeMap<>();
        events.forEach((key, of) -> of.forEach(it -> windows.merge(key + "@" + it.time / size * size, 1, Integer::sum)));
        Map<String, String> texts = new TreeMap<>();
        windows.forEach((key, count) -> texts.put(key, String.valueOf(count)));
        return texts;
    }

    Map<String, String> sessions() {
        Map<String, String> sessions = new TreeMap<>();
        events.forEach((key, of) -> {
            List<Long> times = new ArrayList<>(of.stream().map(Event::time).toList());
            Collections.sort(times);
            for (int first = 0; first < times.size(); ) {
                int end = first + 1;
                while (end < times.size() && times.get(end) - times.get(end - 1) <= Application.GAP.toMillis()) {
                    end++;
                }
                sessions.put(key + "@" + times.get(first) + "-" + times.get(end - 1), String.valueOf(end - first));
                first = end;
            }
        });
        return sessions;
    }
}
