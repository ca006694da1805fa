package io.windrow;

import static io.windrow.Tests.b;
import static io.windrow.Tests.fails;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Comparator;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;

/** Opens, cursors and errors leave no memory behind. */
@EnabledOnOs(OS.LINUX)
class MemoryTest {
    /** What the virtual machine may take meanwhile for itself. */
    private static final long SLACK = 48 << 20;

    @Test
    void opensCursorsAndErrorsLeaveNoMemory() throws IOException {
        // An open on a disk waits for it.
        Path folder = Files.createTempDirectory(Path.of("/dev/shm"), "windrow");
        try {
            try (Database database = Database.open(folder.resolve("a"), new Options())) {
                Keyspace planets = database.keyspace("planets");
                planets.put(b("mars"), b("two"));
                planets.put(b("venus"), b("none"));
                compare("errors", 100_000, () -> fails(ErrorCode.INVALID_ARGUMENT, () -> planets.get(b(""))));
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
        System.gc();
        long before = resident();
        for (int i = 0; i < times; i++) {
            work.run();
        }
        System.gc();
        long left = resident() - before;
        assertTrue(left < SLACK, what + " have left " + left + " bytes");
    }

    private static long resident() throws IOException {
        String pages = Files.readString(Path.of("/proc/self/statm")).split(" ")[1];
        return Long.parseLong(pages) * 4096;
    }
}
