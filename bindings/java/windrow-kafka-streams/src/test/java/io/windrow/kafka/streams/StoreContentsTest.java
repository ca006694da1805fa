package io.windrow.kafka.streams;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.windrow.Database;
import java.nio.file.Path;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class StoreContentsTest {
    @TempDir
    Path folder;

    /** An application may be killed when the database is there, and nothing is in it yet. */
    @Test
    void aDatabaseWithoutStateHasNothing() {
        Database.open(folder, Settings.of(Map.of()).options()).close();
        StoreContents contents = StoreContents.read(folder);
        assertEquals("", contents.format());
        assertNull(contents.changelog());
        assertTrue(contents.offset() < 0);
        assertTrue(contents.entries().isEmpty());
    }
}
