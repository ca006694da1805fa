package io.windrow;

import static io.windrow.Tests.b;
import static io.windrow.Tests.fails;
import static io.windrow.Tests.s;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.google.gson.JsonParser;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Optional;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class AdministrationTest {
    @TempDir
    Path folder;

    @Test
    void aCheckpointAndABackupHaveWhatWasThere() {
        Path copy = folder.resolve("copy");
        Backups backups = Backups.in(folder.resolve("backups"));
        try (Database database = Database.open(folder.resolve("database"), new Options())) {
            Keyspace planets = database.keyspace("planets");
            planets.put(b("mars"), b("two moons"));
            database.checkpoint(copy);
            fails(ErrorCode.ALREADY_EXISTS, () -> database.checkpoint(copy));
            assertEquals(1, database.backup(backups));
            planets.put(b("mars"), b("no moon"));
            assertEquals(2, database.backup(backups, 1 << 30));
        }
        try (Database database = Database.openReadOnly(copy, new Options())) {
            Keyspace planets = database.existingKeyspace("planets").orElseThrow();
            assertEquals("two moons", s(planets.get(b("mars"))));
            fails(ErrorCode.READ_ONLY, () -> planets.put(b("mars"), b("?")));
        }
        assertEquals(List.of(1L, 2L), backups.list().stream().map(Backups.Backup::number).toList());
        assertTrue(backups.list().get(0).usable() && backups.list().get(0).bytes() > 0);
        assertEquals(List.of(), backups.verify());
        backups.restore(1, folder.resolve("restored"));
        try (Database database = Database.open(folder.resolve("restored"), new Options())) {
            assertEquals("two moons", s(database.keyspace("planets").get(b("mars"))));
        }
        backups.removeOlderThan(Duration.ofDays(1));
        backups.keepNewest(1);
        assertEquals(List.of(2L), backups.list().stream().map(Backups.Backup::number).toList());
        fails(ErrorCode.NOT_FOUND, () -> backups.restore(1, folder.resolve("again")));
        backups.remove(2);
        assertEquals(List.of(), backups.list());
    }

    @Test
    void aPersistThatWasBegunHasWhatCameBeforeIt() {
        Options options = new Options().log(false);
        try (Database database = Database.open(folder, options)) {
            Keyspace planets = database.keyspace("planets");
            planets.put(b("mars"), b("two moons"));
            try (PendingPersist pending = database.beginPersist()) {
                planets.put(b("venus"), b("no moon"));
                pending.await();
                assertTrue(pending.isEnded());
                pending.await();
                pending.close();
                fails(ErrorCode.CLOSED, pending::await);
            }
            database.beginPersist().close();
            planets.put(b("earth"), b("a moon"));
        }
        try (Database database = Database.open(folder, options)) {
            assertEquals("two moons", s(database.keyspace("planets").get(b("mars"))));
            assertEquals(Optional.empty(), database.keyspace("planets").get(b("earth")));
            PendingPersist pending = database.beginPersist();
            database.close();
            fails(ErrorCode.CLOSED, pending::isEnded);
        }
        try (Database database = Database.open(folder, new Options())) {
            try (PendingPersist pending = database.beginPersist()) {
                assertTrue(pending.isEnded());
            }
        }
    }

    @Test
    void keyspacesAreNamedRenamedAndDropped() {
        try (Database database = Database.open(folder, new Options())) {
            assertEquals(Optional.empty(), database.existingKeyspace("a"));
            Keyspace a = database.keyspace("a");
            Keyspace c = database.keyspace("c", new KeyspaceOptions().preset("lsma").compression("lz4"));
            assertTrue(c.options().contains("\"compression\":\"lz4\""), c.options());
            a.put(b("k"), b("a"));
            c.put(b("k"), b("c"));
            database.swapKeyspaces("a", "c");
            assertEquals("c", a.name());
            a.rename("\u00e4 \ud83e\ude90");
            assertEquals("\u00e4 \ud83e\ude90", a.name());
            assertEquals(List.of("a", "\u00e4 \ud83e\ude90"), database.keyspaceNames().stream().sorted().toList());
            database.dropKeyspace("a");
            fails(ErrorCode.NOT_FOUND, () -> c.get(b("k")));
            assertEquals("a", s(a.get(b("k"))));
        }
    }

    @Test
    void statisticsAreNumbers() {
        try (Database database = Database.open(folder, new Options())) {
            Keyspace planets = database.keyspace("planets");
            for (int i = 0; i < 1000; i++) {
                planets.put(b("key " + i), b("value"));
            }
            database.persist();
            database.flush();
            database.waitIdle();
            database.setBackgroundThreads(1);
            assertTrue(JsonParser.parseString(database.statistics()).getAsJsonObject().size() > 10);
            assertTrue(JsonParser.parseString(database.memory()).getAsJsonObject().size() > 3);
            assertEquals(1000, planets.approximateCount(KeyRange.all()));
            assertTrue(planets.approximateBytes(KeyRange.all()) > 1000);
            assertEquals(List.of(), database.verify());
        }
    }

    @Test
    void wrongOptionsNameThemselves() {
        WindrowException error = fails(
                ErrorCode.INVALID_ARGUMENT, () -> Database.open(folder, new Options().blockSource("paper")));
        assertTrue(error.getMessage().startsWith("block_source: "), error.getMessage());
        fails(ErrorCode.INVALID_ARGUMENT, () -> Database.open(folder, new Options().cacheBytes(-1)));
        fails(ErrorCode.INVALID_ARGUMENT,
                () -> Database.open(folder, new Options().keyspace(new KeyspaceOptions().sizeRatio(Double.NaN))));
        fails(ErrorCode.NOT_FOUND, () -> Database.open(folder, new Options().createIfMissing(false)));
        assertThrows(NullPointerException.class, () -> new KeyspaceOptions().compression(null));
    }

    @Test
    void damageIsAnExceptionWithFileAndOffset() throws IOException {
        try (Database database = Database.open(folder, new Options())) {
            Keyspace planets = database.keyspace("planets");
            for (int i = 0; i < 1000; i++) {
                planets.put(b("key " + i), b("value"));
            }
            database.flush();
        }
        Path table;
        try (var files = Files.list(folder)) {
            table = files.filter(it -> it.toString().endsWith(".table")).findFirst().orElseThrow();
        }
        byte[] content = Files.readAllBytes(table);
        content[100] ^= 1;
        Files.write(table, content);
        try (Database database = Database.open(folder, new Options())) {
            Keyspace planets = database.keyspace("planets");
            WindrowException damage = fails(ErrorCode.CORRUPTION, () -> planets.get(b("key 0")));
            assertEquals(Optional.of(table.getFileName().toString()), damage.file());
            assertTrue(damage.offset().isPresent());
            assertFalse(database.verify().isEmpty());
        }
        Database.destroy(folder);
        fails(ErrorCode.NOT_FOUND, () -> Database.open(folder, new Options().createIfMissing(false)));
    }
}
