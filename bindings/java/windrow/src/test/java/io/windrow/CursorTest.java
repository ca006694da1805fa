package io.windrow;

import static io.windrow.Tests.b;
import static io.windrow.Tests.fails;
import static io.windrow.Tests.s;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

/** What a cursor does after a read that fails. */
class CursorTest {
    /** Answers as the native library would, and notes the moves. */
    private static final class Answers implements Reader {
        private final ArrayDeque<Object> answers = new ArrayDeque<>();
        private final List<Integer> moves = new ArrayList<>();

        Answers failing(Throwable thrown) {
            answers.add(thrown);
            return this;
        }

        Answers having(boolean isLast, String... keys) {
            Packed chunk = new Packed(100).add(isLast ? 1 : 0);
            for (String key : keys) {
                chunk.addText(key).addText("value");
            }
            answers.add(chunk.toArray());
            return this;
        }

        @Override
        public byte[] read(int move, byte[] key, int count) {
            moves.add(move);
            Object answer = answers.remove();
            if (answer instanceof Error error) {
                throw error;
            } else if (answer instanceof RuntimeException exception) {
                throw exception;
            }
            return (byte[]) answer;
        }

        @Override
        public int countMax() {
            return 10;
        }

        @Override
        public void check() {}

        @Override
        public void close() {}
    }

    private static WindrowException damage() {
        return new WindrowException(ErrorCode.CORRUPTION, "damaged");
    }

    @Test
    void aStepAfterAnErrorOfTheFirstMoveGoesOn() {
        Answers answers = new Answers().failing(damage()).having(true, "b", "c");
        Cursor cursor = new Cursor(answers);
        fails(ErrorCode.CORRUPTION, cursor::next);
        assertTrue(cursor.next());
        assertEquals("b", s(cursor.key()));
        assertTrue(cursor.next());
        assertEquals(List.of(Reader.FIRST, Reader.NEXT), answers.moves);

        answers = new Answers().failing(damage()).having(true, "a");
        cursor = new Cursor(answers);
        fails(ErrorCode.CORRUPTION, cursor::first);
        assertTrue(cursor.previous());
        assertEquals(List.of(Reader.FIRST, Reader.PREVIOUS), answers.moves);
    }

    @Test
    void anErrorInTheMiddleIsNoEnd() {
        Answers answers = new Answers().having(false, "a").failing(damage()).failing(damage()).having(true, "d");
        Entries entries = new Entries(answers, true);
        assertEquals("a", s(entries.next().key()));
        fails(ErrorCode.CORRUPTION, entries::hasNext);
        fails(ErrorCode.CORRUPTION, entries::hasNext);
        assertEquals("d", s(entries.next().key()));
        assertEquals(false, entries.hasNext());
    }

    @Test
    void whatGotLostIsNotSkipped() {
        Answers answers = new Answers().having(false, "a").failing(new OutOfMemoryError()).having(true, "b");
        Cursor cursor = new Cursor(answers);
        assertTrue(cursor.next());
        assertThrows(OutOfMemoryError.class, cursor::next);
        assertThrows(IllegalStateException.class, cursor::next);
        assertThrows(IllegalStateException.class, cursor::next);
        assertTrue(cursor.seek(b("b")));
        assertEquals(List.of(Reader.FIRST, Reader.NEXT, Reader.FROM), answers.moves);
        assertEquals(false, cursor.next());
    }
}
