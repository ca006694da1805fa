package io.windrow;

import static io.windrow.Tests.b;
import static io.windrow.Tests.fails;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Comparator;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;

/** Opens, cursors and errors leave no memory behind. */
@EnabledOnOs(OS.LINUX)
class MemoryTest {
    /** What the virtual machine may take meanwhile for itself. What leaks is there in each round. */
    private static final long SLACK = 4 << 20;
    private static final int ROUNDS = 5;

    @Test
    void opensCursorsAndErrorsLeaveNoMemory() throws IOException {
        MergeOperator last = new MergeOperator() {
            @Override
            public String name() {
                return "test.last";
            }

            @Override
            public byte[] merge(byte[] key, byte[] base, List<byte[]> operands) {
                return operands.get(operands.size() - 1);
            }
        };
        // An open on a disk waits for it.
        Path folder = Files.createTempDirectory(Path.of("/dev/shm"), "windrow");
        try {
            try (Database database = Database.open(folder.resolve("a"), new Options().mergeOperator("sums", last))) {
                Keyspace sums = database.keyspace("sums");
                sums.merge(b("k"), b("1"));
                sums.merge(b("k"), b("2"));
                Keyspace planets = database.keyspace("planets");
                planets.put(b("mars"), b("two"));
                planets.put(b("venus"), b("none"));
                compare("errors", 100_000, () -> fails(ErrorCode.INVALID_ARGUMENT, () -> planets.get(b(""))));
                compare("snapshots", 50_000, () -> {
                    try (Snapshot snapshot = database.snapshot(); SnapshotView view = planets.at(snapshot)) {
                        view.get(b("mars"));
                    }
                });
                compare("transactions", 50_000, () -> {
                    try (Transaction transaction = database.begin(Isolation.SERIALIZABLE)) {
                        transaction.put(planets, b("mars"), b("three"));
                        transaction.entries(planets, KeyRange.all()).next();
                    }
                });
                compare("merges", 50_000, () -> sums.get(b("k")));
                compare("loads", 200, () -> sums.bulkLoad(List.of(new Entry(b("l"), b("v"))).iterator()));
                compare("cursors", 100_000, () -> {
                    try (Cursor cursor = planets.cursor(KeyRange.all())) {
                        cursor.next();
                    }
                    try (Entries entries = planets.entries(KeyRange.all())) {
                        entries.next();
                    }
                });
            }
            compare("opens", 1000, () -> {
                try (Database database = Database.open(folder.resolve("b"), new Options())) {
                    database.keyspace("planets").put(b("mars"), b("two"));
                }
            });
        } finally {
            try (var files = Files.walk(folder)) {
                files.sorted(Comparator.reverseOrder()).forEach(file -> file.toFile().delete());
            }
        }
    }

    private static void compare(String what, int times, Runnable work) throws IOException {
        for (int i = 0; i < times / 5; i++) {
            work.run();
        }
        long least = Long.MAX_VALUE;
        for (int round = 0; round < ROUNDS && least >= SLACK; round++) {
            System.gc();
            long before = resident();
            for (int i = 0; i < times; i++) {
                work.run();
            }
            System.gc();
            least = Math.min(least, resident() - before);
        }
        assertTrue(least < SLACK, what + " leave " + least + " bytes each time");
    }

    private static long resident() throws IOException {
        String pages = Files.readString(Path.of("/proc/self/statm")).split(" ")[1];
        return Long.parseLong(pages) * 4096;
    }
}
