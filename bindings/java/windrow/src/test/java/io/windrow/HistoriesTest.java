package io.windrow;

import static io.windrow.Tests.b;
import static io.windrow.Tests.s;
import static io.windrow.Tests.taken;
import static org.junit.jupiter.api.Assertions.assertEquals;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.NavigableMap;
import java.util.Random;
import java.util.TreeMap;
import java.util.stream.Collectors;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Random calls have the answers of a sorted map: reads, cursors, batches, snapshots, transactions, and reopens. */
class HistoriesTest {
    private static final String LETTERS = "ab\u00ff";

    @TempDir
    Path folder;

    private Random random;
    private Database database;
    private Keyspace main;
    private NavigableMap<String, String> present = new TreeMap<>();

    /** Bounds of a range; null for none. */
    private record Bounds(String start, String end) {
        KeyRange keys() {
            return KeyRange.between(start == null ? null : b(start), end == null ? null : b(end));
        }

        NavigableMap<String, String> of(NavigableMap<String, String> model) {
            if (start != null && end != null && start.compareTo(end) > 0) {
                return new TreeMap<>();
            }
            NavigableMap<String, String> part = start == null ? model : model.tailMap(start, true);
            return end == null ? part : part.headMap(end, false);
        }
    }

    @ParameterizedTest
    @ValueSource(longs = {1, 2, 3, 4, 5})
    void randomCallsHaveTheAnswersOfASortedMap(long seed) {
        random = new Random(seed);
        open();
        Snapshot snapshot = null;
        NavigableMap<String, String> past = null;
        for (int step = 0; step < 500; step++) {
            switch (random.nextInt(12)) {
                case 0, 1, 2 -> {
                    String key = key();
                    String value = value();
                    main.put(b(key), b(value));
                    present.put(key, value);
                }
                case 3 -> {
                    String key = key();
                    assertEquals(present.remove(key), s(main.take(b(key))));
                }
                case 4 -> {
                    Bounds bounds = bounds();
                    if (bounds.start != null) {
                        main.deleteRange(bounds.keys());
                        bounds.of(present).clear();
                    }
                }
                case 5, 6 -> writeTogether();
                case 7 -> {
                    if (snapshot != null) {
                        snapshot.close();
                    }
                    snapshot = database.snapshot();
                    past = new TreeMap<>(present);
                }
                case 8 -> {
                    Bounds bounds = bounds();
                    if (snapshot != null && random.nextBoolean()) {
                        try (SnapshotView view = main.at(snapshot)) {
                            compare(view, bounds, past);
                        }
                    } else {
                        compare(main, bounds, present);
                    }
                }
                case 9 -> {
                    String key = key();
                    assertEquals(present.get(key), s(main.get(b(key))));
                    assertEquals(present.containsKey(key), main.contains(b(key)));
                }
                case 10 -> walkAround(bounds());
                default -> {
                    switch (random.nextInt(8)) {
                        case 0, 1, 2 -> database.flush();
                        case 3, 4, 5, 6 -> main.compact(bounds().keys());
                        default -> {
                            database.close();
                            snapshot = null;
                            open();
                        }
                    }
                }
            }
        }
        assertEquals(List.of(), database.verify());
        database.close();
    }

    private void open() {
        KeyspaceOptions keyspaces = new KeyspaceOptions().memtableBytes(64 << 10).blockBytes(256);
        database = Database.open(folder, new Options().keyspace(keyspaces));
        main = database.keyspace("main");
    }

    /** The same writes by a batch, or by a transaction that may be rolled back. */
    private void writeTogether() {
        Batch batch = new Batch();
        try (Transaction transaction = database.begin(Isolation.SERIALIZABLE)) {
            NavigableMap<String, String> after = new TreeMap<>(present);
            for (int i = random.nextInt(5); i > 0; i--) {
                String key = key();
                String value = value();
                batch.put(main, b(key), b(value));
                transaction.put(main, b(key), b(value));
                after.put(key, value);
            }
            Bounds gone = prefix(key());
            batch.deleteRange(main, gone.keys());
            transaction.deleteRange(main, gone.keys());
            gone.of(after).clear();
            Bounds bounds = bounds();
            assertEquals(texts(bounds.of(after)), taken(transaction.entries(main, bounds.keys())));
            assertEquals(texts(bounds.of(after).descendingMap()), taken(transaction.reverse(main, bounds.keys())));
            try (Cursor cursor = transaction.cursor(main, bounds.keys())) {
                walk(cursor, new ArrayList<>(bounds.of(after).keySet()), after);
            }
            switch (random.nextInt(3)) {
                case 0 -> transaction.rollBack();
                case 1 -> {
                    transaction.commit();
                    present = after;
                }
                default -> {
                    transaction.close();
                    database.write(batch);
                    present = after;
                }
            }
        }
    }

    private static void compare(View view, Bounds bounds, NavigableMap<String, String> model) {
        NavigableMap<String, String> expected = bounds.of(model);
        assertEquals(texts(expected), taken(view.entries(bounds.keys())));
        assertEquals(texts(expected.descendingMap()), taken(view.reverse(bounds.keys())));
        assertEquals(expected.size(), view.count(bounds.keys()));
        List<byte[]> values = view.multiGet(expected.keySet().stream().map(Tests::b).toList());
        assertEquals(List.copyOf(expected.values()), values.stream().map(Tests::s).toList());
    }

    private void walkAround(Bounds bounds) {
        try (Cursor cursor = main.cursor(bounds.keys())) {
            walk(cursor, new ArrayList<>(bounds.of(present).keySet()), present);
        }
    }

    private void walk(Cursor cursor, List<String> expected, Map<String, String> model) {
        int at = -1;
        boolean moved = false;
        for (int step = 0; step < 30; step++) {
            int choice = random.nextInt(8);
            String key = key();
            int notLess = (int) expected.stream().filter(it -> it.compareTo(key) < 0).count();
            if (choice == 0) {
                at = 0;
                moved = cursor.first();
            } else if (choice == 1) {
                at = expected.size() - 1;
                moved = cursor.last();
            } else if (choice == 2) {
                at = notLess;
                moved = cursor.seek(b(key));
            } else if (choice == 3) {
                at = notLess - 1;
                moved = cursor.seekBefore(b(key));
            } else if (!moved) {
                continue;
            } else if (choice < 6) {
                at++;
                moved = cursor.next();
            } else {
                at--;
                moved = cursor.previous();
            }
            assertEquals(at >= 0 && at < expected.size(), moved);
            assertEquals(moved, cursor.isValid());
            if (moved) {
                assertEquals(expected.get(at), s(cursor.key()));
                assertEquals(model.get(expected.get(at)), s(cursor.value()));
            }
        }
    }

    private static List<String> texts(Map<String, String> model) {
        return model.entrySet().stream().map(it -> it.getKey() + "=" + it.getValue()).collect(Collectors.toList());
    }

    private String key() {
        StringBuilder key = new StringBuilder();
        for (int i = 1 + random.nextInt(3); i > 0; i--) {
            key.append(LETTERS.charAt(random.nextInt(3)));
        }
        return key.toString();
    }

    private String value() {
        return String.valueOf((char) ('a' + random.nextInt(26))).repeat(random.nextInt(8) * random.nextInt(300));
    }

    private Bounds bounds() {
        return switch (random.nextInt(4)) {
            case 0 -> new Bounds(null, null);
            case 1 -> prefix(key());
            case 2 -> new Bounds(key(), null);
            default -> new Bounds(key(), key());
        };
    }

    private static Bounds prefix(String prefix) {
        KeyRange range = KeyRange.prefix(b(prefix));
        return new Bounds(s(range.start), s(range.end));
    }
}
