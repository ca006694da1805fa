package io.windrow.kafka.streams;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.channels.FileChannel;
import java.nio.file.FileVisitResult;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.SimpleFileVisitor;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.BasicFileAttributes;

/** Steps with folders that survive a power failure. */
final class Folders {
    private Folders() {}

    /** Gives a folder another name within {@code parent}, in one step, which {@link #sync} makes durable. */
    static void rename(Path parent, String from, String to) {
        try {
            Files.move(parent.resolve(from), parent.resolve(to), StandardCopyOption.ATOMIC_MOVE);
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }

    /** Makes the names in {@code parent} durable. */
    static void sync(Path parent) {
        try (FileChannel names = FileChannel.open(parent, StandardOpenOption.READ)) {
            names.force(true);
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }

    /** Removes a folder with all that is in it. A missing one is no error. */
    static void delete(Path folder) {
        try {
            Files.walkFileTree(folder, new SimpleFileVisitor<>() {
                @Override
                public FileVisitResult visitFile(Path file, BasicFileAttributes attributes) throws IOException {
                    Files.deleteIfExists(file);
                    return FileVisitResult.CONTINUE;
                }

                @Override
                public FileVisitResult postVisitDirectory(Path visited, IOException error) throws IOException {
                    if (error != null) {
                        throw error;
                    }
                    Files.deleteIfExists(visited);
                    return FileVisitResult.CONTINUE;
                }
            });
        } catch (NoSuchFileException missing) {
            // It is gone already.
            return;
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
    }
}
