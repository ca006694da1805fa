package io.windrow;

import static io.windrow.Tests.b;
import static io.windrow.Tests.fails;
import static io.windrow.Tests.s;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Path;
import java.time.Duration;
import java.util.Optional;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class SecondaryTest {
    @TempDir
    Path folder;

    @Test
    void aSecondaryReadsBesideTheWriter() {
        fails(ErrorCode.NOT_FOUND, () -> Secondary.open(folder.resolve("none"), new Options()));
        try (Database writer = Database.open(folder, new Options())) {
            Keyspace planets = writer.keyspace("planets");
            planets.put(b("mars"), b("two"));
            try (Secondary secondary = Secondary.open(folder, new Options())) {
                Database first = secondary.database();
                Keyspace seen = first.existingKeyspace("planets").orElseThrow();
                assertEquals("two", s(seen.get(b("mars"))));
                fails(ErrorCode.READ_ONLY, () -> seen.put(b("mars"), b("?")));
                planets.put(b("mars"), b("2"));
                planets.put(b("earth"), b("one"));
                writer.flush();
                writer.keyspace("moons").put(b("phobos"), b("mars"));
                assertEquals("two", s(seen.get(b("mars"))));
                assertEquals(Optional.empty(), first.existingKeyspace("moons"));
                try (Database second = secondary.catchUp(); Database same = secondary.catchUp()) {
                    Keyspace now = second.keyspace("planets");
                    assertEquals("2", s(now.get(b("mars"))));
                    assertEquals(2, now.count(KeyRange.all()));
                    assertEquals("mars", s(second.keyspace("moons").get(b("phobos"))));
                    assertEquals("2", s(same.keyspace("planets").get(b("mars"))));
                }
                // The close of one state leaves the others, of the same kind, too.
                assertEquals("two", s(seen.get(b("mars"))));
                try (Database again = secondary.database()) {
                    assertEquals("2", s(again.keyspace("planets").get(b("mars"))));
                }
                first.close();
                fails(ErrorCode.CLOSED, () -> seen.get(b("mars")));
                Database last = secondary.database();
                secondary.close();
                secondary.close();
                fails(ErrorCode.CLOSED, secondary::catchUp);
                fails(ErrorCode.CLOSED, () -> secondary.follow(Duration.ofSeconds(1)));
                assertEquals("2", s(last.keyspace("planets").get(b("mars"))));
                last.close();
            }
            planets.put(b("venus"), b("none"));
            assertTrue(writer.verify().isEmpty());
        }
    }

    @Test
    void aSecondaryFollowsByItself() throws InterruptedException {
        try (Database writer = Database.open(folder, new Options());
                Secondary secondary = Secondary.open(folder, new Options())) {
            writer.keyspace("planets").put(b("mars"), b("two"));
            secondary.follow(Duration.ofMillis(10));
            boolean isThere = false;
            for (int tries = 0; tries < 6000 && !isThere; tries++) {
                try (Database state = secondary.database()) {
                    isThere = state.existingKeyspace("planets").flatMap(planets -> planets.get(b("mars"))).isPresent();
                }
                Thread.sleep(10);
            }
            assertTrue(isThere);
            fails(ErrorCode.INVALID_ARGUMENT, () -> secondary.follow(Duration.ofMillis(-1)));
            assertFalse(writer.isClosed());
        }
    }

    @Test
    void aSecondaryFoldsByAnOperatorOfJava() {
        MergeOperator last = new MergeOperator() {
            @Override
            public String name() {
                return "test.last";
            }

            @Override
            public byte[] merge(byte[] key, byte[] base, java.util.List<byte[]> operands) {
                return operands.get(operands.size() - 1);
            }
        };
        Options options = new Options().mergeOperator("words", last);
        try (Database writer = Database.open(folder, options)) {
            writer.keyspace("words").merge(b("k"), b("v"));
            try (Secondary secondary = Secondary.open(folder, options); Database state = secondary.catchUp()) {
                assertEquals("v", s(state.keyspace("words").get(b("k"))));
            }
        }
    }
}
