import static java.nio.charset.StandardCharsets.UTF_8;

import io.windrow.Database;
import io.windrow.Entries;
import io.windrow.Isolation;
import io.windrow.KeyRange;
import io.windrow.Keyspace;
import io.windrow.Options;
import io.windrow.Snapshot;
import io.windrow.SnapshotView;
import io.windrow.Transaction;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;

/** Writes, reads and changes a few entries. */
public class Planets {
    public static void main(String[] arguments) throws IOException {
        Path folder = Files.createTempDirectory("planets");
        try (Database database = Database.open(folder, new Options())) {
            Keyspace planets = database.keyspace("planets");
            planets.put(bytes("earth"), bytes("one moon"));
            planets.put(bytes("mars"), bytes("two moons"));
            planets.put(bytes("venus"), bytes("no moon"));
            try (Snapshot snapshot = database.snapshot();
                    SnapshotView before = planets.at(snapshot);
                    Transaction transaction = database.begin(Isolation.SERIALIZABLE)) {
                transaction.delete(planets, bytes("venus"));
                transaction.put(planets, bytes("pluto"), bytes("five moons"));
                transaction.commit();
                try (Entries entries = before.reverse(KeyRange.from(bytes("f")))) {
                    entries.forEachRemaining(it -> System.out.println("before: " + text(it.key()) + ": " + text(it.value())));
                }
            }
            try (Entries entries = planets.entries(KeyRange.all())) {
                entries.forEachRemaining(it -> System.out.println("after: " + text(it.key()) + ": " + text(it.value())));
            }
            if (planets.contains(bytes("venus"))) {
                throw new AssertionError("the transaction has removed it");
            }
        } finally {
            Database.destroy(folder);
        }
    }

    private static byte[] bytes(String text) {
        return text.getBytes(UTF_8);
    }

    private static String text(byte[] bytes) {
        return new String(bytes, UTF_8);
    }
}
