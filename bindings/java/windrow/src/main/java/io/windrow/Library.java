package io.windrow;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Locale;

/** Loads the native library that is in the jar: from a folder that only this user can read, which is removed at once. */
final class Library {
    private Library() {}

    static void load() {
        String platform = platform();
        String file = System.mapLibraryName("windrow_java");
        String resource = "native/" + platform + "/" + file;
        try (InputStream library = Library.class.getResourceAsStream(resource)) {
            if (library == null) {
                throw new UnsatisfiedLinkError("this package has no library for " + platform);
            }
            Path folder = Files.createTempDirectory("windrow");
            Path copy = folder.resolve(file);
            try {
                Files.copy(library, copy);
                System.load(copy.toString());
            } finally {
                Files.deleteIfExists(copy);
                Files.deleteIfExists(folder);
            }
            String expected = text("version");
            String found = new String(Native.version(), UTF_8);
            if (!expected.equals(found)) {
                throw new UnsatisfiedLinkError("the library has version " + found + ", and the package " + expected);
            }
        } catch (IOException error) {
            UnsatisfiedLinkError failure = new UnsatisfiedLinkError("the library cannot be unpacked: " + error);
            failure.initCause(error);
            throw failure;
        }
    }

    private static String text(String resource) throws IOException {
        try (InputStream content = Library.class.getResourceAsStream(resource)) {
            if (content == null) {
                throw new IOException("the package lacks " + resource);
            }
            return new String(content.readAllBytes(), UTF_8).strip();
        }
    }

    private static String platform() {
        String system = System.getProperty("os.name").toLowerCase(Locale.ROOT);
        String name = system.startsWith("mac") ? "macos" : system.startsWith("linux") ? "linux" : system.replace(' ', '-');
        String processor = System.getProperty("os.arch");
        return name + "-" + switch (processor) {
            case "amd64", "x86_64" -> "x86_64";
            case "arm64", "aarch64" -> "aarch64";
            default -> processor;
        };
    }
}
