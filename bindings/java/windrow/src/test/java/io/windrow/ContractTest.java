package io.windrow;

import static io.windrow.Tests.fails;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;

import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.stream.Stream;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.TestFactory;
import org.junit.jupiter.api.io.TempDir;

/** The contract suite of all bindings: see {@code bindings/contract/README.md}. */
class ContractTest {
    @TempDir
    Path folder;

    @TestFactory
    Stream<DynamicTest> theAnswersAreThoseOfTheSuite() throws IOException {
        String text = Files.readString(Path.of(System.getProperty("windrow.contract")));
        JsonObject suite = JsonParser.parseString(text).getAsJsonObject();
        Options options = new Options().lockTimeout(milliseconds(suite, "lock_timeout"));
        suite.getAsJsonObject("merge_operators").asMap()
                .forEach((keyspace, operator) -> options.mergeOperator(keyspace, operator.getAsString()));
        List<JsonElement> histories = suite.getAsJsonArray("histories").asList();
        return histories.stream().map(JsonElement::getAsJsonObject).map(history -> {
            String name = history.get("name").getAsString();
            return DynamicTest.dynamicTest(name, () -> run(folder.resolve(name), options, history));
        });
    }

    private static void run(Path path, Options options, JsonObject history) {
        Session session = new Session(path, options);
        int at = 0;
        for (JsonElement element : history.getAsJsonArray("steps")) {
            JsonObject step = element.getAsJsonObject();
            try {
                if (step.has("error")) {
                    String kind = step.get("error").getAsString();
                    ErrorCode code = ErrorCode.valueOf(kind.replaceAll("(?<=.)([A-Z])", "_$1").toUpperCase());
                    fails(code, () -> session.run(step));
                } else {
                    session.run(step);
                }
            } catch (AssertionError | RuntimeException error) {
                throw new AssertionError("step " + at + ": " + step, error);
            }
            at++;
        }
        session.database.close();
    }

    private static Duration milliseconds(JsonObject step, String field) {
        return Duration.ofMillis(step.get(field).getAsLong());
    }

    /** Runs the steps of a history. */
    private static final class Session {
        private final Path path;
        private final Options options;
        private Database database;
        private final Map<String, Keyspace> keyspaces = new HashMap<>();
        private final Map<Integer, Snapshot> snapshots = new HashMap<>();
        private final Map<Integer, Transaction> transactions = new HashMap<>();
        private final Map<Integer, Savepoint> savepoints = new HashMap<>();
        private final Map<String, ChangeConsumer> consumers = new HashMap<>();
        /** The numbers of the changes that each consumer has read last. */
        private final Map<String, List<Long>> read = new HashMap<>();

        private final Instant began = Instant.now();

        Session(Path path, Options options) {
            this.path = path;
            this.options = options;
            open();
        }

        private void open() {
            database = Database.open(path, options);
            List.of("main", "lists").forEach(name -> keyspaces.put(name, database.keyspace(name)));
        }

        void run(JsonObject step) {
            String call = step.get("do").getAsString();
            Transaction transaction = step.has("transaction") ? transactions.get(step.get("transaction").getAsInt()) : null;
            switch (call) {
                case "put" -> put(step, transaction);
                case "delete" -> {
                    if (transaction != null) {
                        transaction.delete(keyspace(step), bytes(step, "key"));
                    } else {
                        keyspace(step).delete(bytes(step, "key"));
                    }
                }
                case "merge" -> {
                    if (transaction != null) {
                        transaction.merge(keyspace(step), bytes(step, "key"), bytes(step, "operand"));
                    } else {
                        keyspace(step).merge(bytes(step, "key"), bytes(step, "operand"));
                    }
                }
                case "delete_range" -> {
                    if (transaction != null) {
                        transaction.deleteRange(keyspace(step), range(step));
                    } else {
                        keyspace(step).deleteRange(range(step));
                    }
                }
                case "put_if_absent" -> {
                    boolean done = keyspace(step).putIfAbsent(bytes(step, "key"), bytes(step, "value"));
                    assertEquals(step.get("done").getAsBoolean(), done);
                }
                case "compare_and_swap" -> {
                    boolean done = keyspace(step)
                            .compareAndSwap(bytes(step, "key"), bytes(step, "expected"), bytes(step, "value"));
                    assertEquals(step.get("done").getAsBoolean(), done);
                }
                case "batch" -> batch(step.getAsJsonArray("writes"));
                case "get" -> get(step, transaction);
                case "multi_get" -> multiGet(step);
                case "expires_at" -> {
                    Optional<Instant> expiry = keyspace(step).expiresAt(bytes(step, "key"));
                    assertEquals(step.get("exists").getAsBoolean(), expiry.isPresent());
                    expiry.ifPresent(at -> assertEquals(timeToLive(step), timeToLive(at)));
                }
                case "scan" -> scan(step, transaction);
                case "neighbors" -> neighbors(step);
                case "snapshot" -> snapshots.put(number(step, "snapshot"), database.snapshot());
                case "release" -> snapshots.remove(number(step, "snapshot")).close();
                case "begin" -> {
                    String isolation = step.get("isolation").getAsString();
                    transactions.put(
                            number(step, "transaction"),
                            isolation.equals("locking")
                                    ? database.beginLocking()
                                    : database.begin(Isolation.valueOf(isolation.toUpperCase())));
                }
                case "commit" -> transactions.remove(number(step, "transaction")).commit();
                case "prepare" -> transactions.remove(number(step, "transaction")).prepare(name(step));
                case "prepared_names" -> assertEquals(names(step), database.preparedTransactions());
                case "commit_prepared" -> database.commitPrepared(name(step));
                case "roll_back_prepared" -> database.rollBackPrepared(name(step));
                case "consumer" -> consumers.put(name(step), database.consumer(name(step)));
                case "consumer_names" -> assertEquals(
                        names(step), database.consumers().stream().map(ChangeConsumer.State::name).toList());
                case "changes" -> changes(step);
                case "acknowledge" -> {
                    long sequence = read.get(name(step)).get(number(step, "count") - 1);
                    consumers.get(name(step)).acknowledge(sequence);
                    assertEquals(sequence, consumers.get(name(step)).acknowledged());
                }
                case "remove_consumer" -> database.removeConsumer(name(step));
                case "roll_back" -> transactions.remove(number(step, "transaction")).rollBack();
                case "savepoint" -> savepoints.put(number(step, "savepoint"), transaction.savepoint());
                case "roll_back_to" -> transaction.rollBackTo(savepoints.get(number(step, "savepoint")));
                case "flush" -> database.flush();
                case "compact" -> keyspace(step).compact(KeyRange.all());
                case "close" -> database.close();
                case "reopen" -> {
                    database.close();
                    open();
                }
                case "open_again" -> Database.open(path, options).close();
                default -> throw new AssertionError(call);
            }
        }

        private void put(JsonObject step, Transaction transaction) {
            byte[] key = bytes(step, "key");
            byte[] value = bytes(step, "value");
            if (transaction != null && step.has("ttl")) {
                transaction.put(keyspace(step), key, value, milliseconds(step, "ttl"));
            } else if (transaction != null) {
                transaction.put(keyspace(step), key, value);
            } else if (step.has("ttl")) {
                keyspace(step).put(key, value, milliseconds(step, "ttl"));
            } else {
                keyspace(step).put(key, value);
            }
        }

        private void batch(JsonArray writes) {
            Batch batch = new Batch();
            for (JsonElement element : writes) {
                JsonObject write = element.getAsJsonObject();
                switch (write.get("do").getAsString()) {
                    case "put" -> {
                        if (write.has("ttl")) {
                            Duration ttl = milliseconds(write, "ttl");
                            batch.put(keyspace(write), bytes(write, "key"), bytes(write, "value"), ttl);
                        } else {
                            batch.put(keyspace(write), bytes(write, "key"), bytes(write, "value"));
                        }
                    }
                    case "delete" -> batch.delete(keyspace(write), bytes(write, "key"));
                    case "merge" -> batch.merge(keyspace(write), bytes(write, "key"), bytes(write, "operand"));
                    default -> batch.deleteRange(keyspace(write), range(write));
                }
            }
            database.write(batch);
        }

        private void get(JsonObject step, Transaction transaction) {
            byte[] key = bytes(step, "key");
            byte[] found;
            if (transaction != null && step.has("for_update")) {
                found = transaction.getForUpdate(keyspace(step), key).orElse(null);
            } else if (transaction != null) {
                found = transaction.get(keyspace(step), key).orElse(null);
            } else if (step.has("snapshot")) {
                try (SnapshotView view = keyspace(step).at(snapshots.get(number(step, "snapshot")))) {
                    found = view.get(key).orElse(null);
                }
            } else {
                found = keyspace(step).get(key).orElse(null);
            }
            assertArrayEquals(bytes(step, "value"), found);
        }

        private void multiGet(JsonObject step) {
            List<byte[]> keys = all(step, "keys");
            List<byte[]> found;
            if (step.has("snapshot")) {
                try (SnapshotView view = keyspace(step).at(snapshots.get(number(step, "snapshot")))) {
                    found = view.multiGet(keys);
                }
            } else {
                found = keyspace(step).multiGet(keys);
            }
            assertArrayEquals(all(step, "values").toArray(), found.toArray());
        }

        /** The time to live of what expires then, or null. It has whole hours, and no history takes as long. */
        private Long timeToLive(Instant expiry) {
            if (expiry.equals(Instant.MAX)) {
                return null;
            }
            return 3_600_000 * Duration.between(began, expiry).plusMinutes(30).toHours();
        }

        private static Long timeToLive(JsonObject step) {
            return step.get("ttl").isJsonNull() ? null : Long.valueOf(step.get("ttl").getAsLong());
        }

        private void changes(JsonObject step) {
            List<Long> sequences = new ArrayList<>();
            JsonArray found = new JsonArray();
            try (Changes changes = consumers.get(name(step)).changes()) {
                while (changes.hasNext()) {
                    Change.BatchWritten batch = (Change.BatchWritten) changes.next();
                    assertEquals(batch.writes().size(), batch.sequence() + 1 - batch.firstSequence());
                    sequences.add(batch.sequence());
                    JsonArray writes = new JsonArray();
                    batch.writes().forEach(write -> writes.add(changed(write)));
                    found.add(writes);
                }
            }
            read.put(name(step), sequences);
            assertEquals(step.get("changes"), found);
        }

        /** A write of a change as the suite has it. */
        private JsonObject changed(Write write) {
            JsonObject changed = new JsonObject();
            String call = write.getClass().getSimpleName();
            changed.addProperty("do", call.equals("DeleteRange") ? "delete_range" : call.toLowerCase());
            changed.addProperty("keyspace", write.keyspace());
            if (write instanceof Write.DeleteRange deleted) {
                add(changed, "start", deleted.range().start);
                add(changed, "end", deleted.range().end);
            } else if (write instanceof Write.Delete deleted) {
                add(changed, "key", deleted.key());
            } else if (write instanceof Write.Merge merged) {
                add(changed, "key", merged.key());
                add(changed, "operand", merged.operand());
            } else if (write instanceof Write.Put put) {
                add(changed, "key", put.key());
                add(changed, "value", put.value());
                if (timeToLive(put.expiresAt()) != null) {
                    changed.addProperty("ttl", timeToLive(put.expiresAt()));
                }
            }
            return changed;
        }

        private static void add(JsonObject write, String field, byte[] bytes) {
            write.addProperty(field, bytes == null ? null : HexFormat.of().formatHex(bytes));
        }

        private void scan(JsonObject step, Transaction transaction) {
            boolean reverse = step.get("reverse").getAsBoolean();
            KeyRange range = range(step);
            List<String> found;
            if (transaction != null) {
                found = hex(reverse
                        ? transaction.reverse(keyspace(step), range)
                        : transaction.entries(keyspace(step), range));
            } else if (step.has("snapshot")) {
                try (SnapshotView view = keyspace(step).at(snapshots.get(number(step, "snapshot")))) {
                    found = hex(reverse ? view.reverse(range) : view.entries(range));
                }
            } else {
                found = hex(reverse ? keyspace(step).reverse(range) : keyspace(step).entries(range));
            }
            List<String> expected = new ArrayList<>();
            for (JsonElement entry : step.getAsJsonArray("entries")) {
                JsonArray pair = entry.getAsJsonArray();
                expected.add(HexFormat.of().formatHex(bytes(pair.get(0))) + "=" + HexFormat.of().formatHex(bytes(pair.get(1))));
            }
            assertEquals(expected, found);
        }

        private void neighbors(JsonObject step) {
            if (!step.has("snapshot")) {
                neighbors(step, keyspace(step));
                return;
            }
            try (SnapshotView view = keyspace(step).at(snapshots.get(number(step, "snapshot")))) {
                neighbors(step, view);
            }
        }

        private static void neighbors(JsonObject step, View view) {
            byte[] key = bytes(step, "key");
            try (Cursor cursor = view.cursor(KeyRange.all())) {
                assertArrayEquals(bytes(step, "before"), cursor.seekBefore(key) ? cursor.key() : null);
                assertArrayEquals(bytes(step, "after"), cursor.seek(key) ? cursor.key() : null);
            }
        }

        private Keyspace keyspace(JsonObject step) {
            return keyspaces.get(step.get("keyspace").getAsString());
        }

        private static KeyRange range(JsonObject step) {
            return KeyRange.between(bytes(step, "start"), bytes(step, "end"));
        }

        private static int number(JsonObject step, String field) {
            return step.get(field).getAsInt();
        }

        private static String name(JsonObject step) {
            return step.get("name").getAsString();
        }

        private static List<String> names(JsonObject step) {
            return step.getAsJsonArray("names").asList().stream().map(JsonElement::getAsString).toList();
        }

        private static List<byte[]> all(JsonObject step, String field) {
            List<byte[]> all = new ArrayList<>();
            step.getAsJsonArray(field).forEach(one -> all.add(bytes(one)));
            return all;
        }

        private static byte[] bytes(JsonObject step, String field) {
            return bytes(step.get(field));
        }

        private static byte[] bytes(JsonElement found) {
            if (found == null || found.isJsonNull()) {
                return null;
            }
            if (found.isJsonObject()) {
                String text = found.getAsJsonObject().get("byte").getAsString();
                return HexFormat.of().parseHex(text.repeat(found.getAsJsonObject().get("times").getAsInt()));
            }
            return HexFormat.of().parseHex(found.getAsString());
        }

        private static List<String> hex(Entries entries) {
            List<String> found = new ArrayList<>();
            try (entries) {
                entries.forEachRemaining(entry -> found.add(
                        HexFormat.of().formatHex(entry.key()) + "=" + HexFormat.of().formatHex(entry.value())));
            }
            return found;
        }
    }
}
