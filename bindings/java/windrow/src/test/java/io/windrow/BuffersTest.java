package io.windrow;

import static io.windrow.Tests.b;
import static io.windrow.Tests.fails;
import static io.windrow.Tests.s;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.util.List;
import java.util.OptionalInt;
import java.util.Random;
import java.util.function.IntFunction;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledForJreRange;
import org.junit.jupiter.api.condition.JRE;
import org.junit.jupiter.api.function.Executable;
import org.junit.jupiter.api.io.TempDir;

/** Keys and values in buffers: direct ones, and those of arrays. */
class BuffersTest {
    private static final List<IntFunction<ByteBuffer>> KINDS = List.of(
            ByteBuffer::allocate,
            ByteBuffer::allocateDirect,
            bytes -> ByteBuffer.allocateDirect(bytes + 7).position(3).slice().limit(bytes),
            bytes -> ByteBuffer.allocate(bytes + 9).position(5).limit(bytes + 5));

    @TempDir
    Path folder;

    private static ByteBuffer with(IntFunction<ByteBuffer> kind, byte[] bytes) {
        ByteBuffer buffer = kind.apply(bytes.length);
        int start = buffer.position();
        buffer.put(bytes).position(start);
        return buffer;
    }

    private static byte[] random(Random random, int length) {
        byte[] bytes = new byte[length];
        random.nextBytes(bytes);
        return bytes;
    }

    @Test
    void allKindsOfBuffersHaveTheSameMeaning() {
        Random random = new Random(5);
        try (Database database = Database.open(folder, new Options().mergeOperator("k", "windrow.append.2c"))) {
            Keyspace keyspace = database.keyspace("k");
            for (int length : List.of(0, 1, 100, Scratch.BYTES - 10, Scratch.BYTES, Scratch.BYTES + 1, 300_000)) {
                for (IntFunction<ByteBuffer> kind : KINDS) {
                    byte[] value = random(random, length);
                    ByteBuffer key = with(kind, b("key " + length));
                    ByteBuffer put = with(kind, value);
                    int position = put.position();
                    keyspace.put(key, put);
                    assertEquals(position, put.position());
                    assertArrayEquals(value, keyspace.getOrNull(b("key " + length)));

                    ByteBuffer target = kind.apply(length + 20);
                    int start = target.position();
                    int limit = target.limit();
                    assertEquals(OptionalInt.of(length), keyspace.get(key, target));
                    assertEquals(start + length, target.position());
                    assertEquals(limit, target.limit());
                    byte[] found = new byte[length];
                    target.position(start).get(found);
                    assertArrayEquals(value, found);
                    assertTrue(keyspace.contains(key));
                    inATransaction(database, keyspace, kind, value);

                    keyspace.delete(key);
                    assertFalse(keyspace.contains(key));
                    assertEquals(OptionalInt.empty(), keyspace.get(key, target));
                    if (length > 0) {
                        ByteBuffer small = kind.apply(length - 1);
                        int before = small.position();
                        keyspace.put(key, with(kind, value));
                        assertEquals(OptionalInt.of(length), keyspace.get(key, small));
                        assertEquals(before, small.position());
                    }
                }
            }
        }
    }

    private static void inATransaction(Database database, Keyspace keyspace, IntFunction<ByteBuffer> kind, byte[] value) {
        try (Transaction transaction = database.begin(Isolation.SERIALIZABLE)) {
            ByteBuffer key = with(kind, b("in a transaction"));
            assertEquals(OptionalInt.empty(), transaction.get(keyspace, key, ByteBuffer.allocateDirect(5)));
            transaction.put(keyspace, key, with(kind, value));
            ByteBuffer target = ByteBuffer.allocateDirect(value.length);
            assertEquals(OptionalInt.of(value.length), transaction.get(keyspace, key, target));
            byte[] found = new byte[value.length];
            target.flip().get(found);
            assertArrayEquals(value, found);
        }
    }

    @Test
    void batchesAndMergesTakeBuffers() {
        try (Database database = Database.open(folder, new Options().mergeOperator("k", "windrow.append.2c"))) {
            Keyspace keyspace = database.keyspace("k");
            for (IntFunction<ByteBuffer> kind : KINDS) {
                ByteBuffer key = with(kind, b("key"));
                keyspace.merge(key, with(kind, b("one")));
                keyspace.merge(key, with(kind, new byte[Scratch.BYTES]));
                keyspace.delete(key);
                database.write(new Batch()
                        .put(keyspace, key, with(kind, b("zero")))
                        .merge(keyspace, key, with(kind, b("one")))
                        .put(keyspace, with(kind, b("other")), with(kind, b("x")))
                        .delete(keyspace, with(kind, b("other"))));
                assertEquals("zero,one", s(keyspace.get(b("key"))));
                assertFalse(keyspace.contains(b("other")));
            }
        }
    }

    @Test
    void wrongBuffersAreErrors() {
        try (Database database = Database.open(folder, new Options())) {
            Keyspace keyspace = database.keyspace("k");
            ByteBuffer key = with(ByteBuffer::allocateDirect, b("key"));
            keyspace.put(key, key);
            for (ByteBuffer readOnly : List.of(ByteBuffer.allocate(9).asReadOnlyBuffer(), ByteBuffer.allocateDirect(9).asReadOnlyBuffer())) {
                assertThrows(java.nio.ReadOnlyBufferException.class, () -> keyspace.get(key, readOnly));
            }
            assertEquals(OptionalInt.of(3), keyspace.get(key.asReadOnlyBuffer(), ByteBuffer.allocate(3)));
            fails(ErrorCode.INVALID_ARGUMENT, () -> keyspace.get(ByteBuffer.allocateDirect(0), key));
            fails(ErrorCode.INVALID_ARGUMENT, () -> keyspace.put(ByteBuffer.allocateDirect(70_000), key));
            assertThrows(NullPointerException.class, () -> keyspace.put(key, (ByteBuffer) null));
            assertThrows(NullPointerException.class, () -> keyspace.get((ByteBuffer) null, key));
            assertThrows(NullPointerException.class, () -> new Batch().put(keyspace, (ByteBuffer) null, key));
        }
    }

    @Test
    void aCallFromACallHasItsOwnMemory() {
        try (Database others = Database.open(folder.resolve("others"), new Options())) {
            Keyspace other = others.keyspace("k");
            other.put(b("another key"), b("another value"));
            ByteBuffer target = ByteBuffer.allocateDirect(100);
            MergeOperator reading = new MergeOperator() {
                @Override
                public String name() {
                    return "test.reading";
                }

                @Override
                public byte[] merge(byte[] key, byte[] base, List<byte[]> operands) {
                    other.get(with(ByteBuffer::allocateDirect, b("another key")), target.clear());
                    throw new IllegalStateException("not now");
                }
            };
            try (Database database = Database.open(folder.resolve("these"), new Options().mergeOperator("k", reading))) {
                Keyspace keyspace = database.keyspace("k");
                keyspace.merge(b("the key"), b("operand"));
                ByteBuffer key = with(ByteBuffer::allocateDirect, b("the key"));
                for (int i = 0; i < 3; i++) {
                    // The message has the key, which the library looks up again after the call.
                    WindrowException error = fails(ErrorCode.MERGE, () -> keyspace.get(key, ByteBuffer.allocateDirect(10)));
                    assertTrue(error.getMessage().contains("the key"), error.getMessage());
                    assertEquals("another value".length(), target.position());
                }
            }
        }
    }

    /** The memory of a buffer may go away with its arena: that is an exception, where the library would end the process. */
    @Test
    @EnabledForJreRange(min = JRE.JAVA_22)
    void aBufferOfAClosedArenaIsAnError() throws Exception {
        Class<?> arenas = Class.forName("java.lang.foreign.Arena");
        Object arena = arenas.getMethod("ofConfined").invoke(null);
        // Memory that goes back to the system.
        Object segment = arenas.getMethod("allocate", long.class, long.class).invoke(arena, 64L << 20, 1L);
        ByteBuffer buffer = (ByteBuffer) Class.forName("java.lang.foreign.MemorySegment").getMethod("asByteBuffer").invoke(segment);
        buffer.limit(10);
        try (Database database = Database.open(folder, new Options())) {
            Keyspace keyspace = database.keyspace("k");
            ByteBuffer key = with(ByteBuffer::allocateDirect, b("key"));
            keyspace.put(key, buffer);
            assertEquals(OptionalInt.of(10), keyspace.get(key, buffer));
            buffer.position(0);
            arenas.getMethod("close").invoke(arena);
            Batch batch = new Batch();
            for (Executable call : List.<Executable>of(
                    () -> keyspace.put(key, buffer),
                    () -> keyspace.put(buffer, key),
                    () -> keyspace.get(buffer, key),
                    () -> keyspace.get(key, buffer),
                    () -> keyspace.delete(buffer),
                    () -> keyspace.contains(buffer),
                    () -> batch.put(keyspace, key, buffer))) {
                assertThrows(IllegalStateException.class, call);
            }
            assertEquals(0, batch.size());
            database.write(batch.put(keyspace, b("whole"), b("v")));
            assertEquals("v", s(keyspace.get(b("whole"))));
        }
    }
}
