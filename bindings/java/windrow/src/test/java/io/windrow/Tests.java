package io.windrow;

import static java.nio.charset.StandardCharsets.ISO_8859_1;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import org.junit.jupiter.api.function.Executable;

/** What several tests use. */
final class Tests {
    private Tests() {}

    static byte[] b(String text) {
        return text.getBytes(ISO_8859_1);
    }

    static String s(byte[] bytes) {
        return bytes == null ? null : new String(bytes, ISO_8859_1);
    }

    static String s(Optional<byte[]> bytes) {
        return s(bytes.orElse(null));
    }

    /** Entries as texts, {@code key=value}. */
    static List<String> taken(Entries entries) {
        List<String> taken = new ArrayList<>();
        try (entries) {
            while (entries.hasNext()) {
                byte[] key = entries.peekKey();
                Entry entry = entries.next();
                assertEquals(s(key), s(entry.key()));
                taken.add(s(entry.key()) + "=" + s(entry.value()));
            }
        }
        return taken;
    }

    static WindrowException fails(ErrorCode code, Executable call) {
        WindrowException error = assertThrows(WindrowException.class, call);
        assertEquals(code, error.code(), error.getMessage());
        return error;
    }
}
