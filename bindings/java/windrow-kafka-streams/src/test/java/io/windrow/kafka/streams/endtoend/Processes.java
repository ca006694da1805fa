package io.windrow.kafka.streams.endtoend;

import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/** Processes with the class path of this one. */
final class Processes {
    private Processes() {}

    /** Starts a program whose output goes to a file. */
    static Process java(Path output, String heap, String program, String... arguments) throws IOException {
        return builder(heap, program, arguments).redirectErrorStream(true).redirectOutput(output.toFile()).start();
    }

    /** Starts a program whose output the caller reads, and whose errors go to a file. */
    static Process javaWithOutput(Path errors, String heap, String program, String... arguments) throws IOException {
        return builder(heap, program, arguments).redirectError(ProcessBuilder.Redirect.appendTo(errors.toFile())).start();
    }

    private static ProcessBuilder builder(String heap, String program, String... arguments) {
        List<String> command = new ArrayList<>(List.of(
                Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                "-Xmx" + heap,
                "-cp",
                System.getProperty("java.class.path"),
                program));
        command.addAll(List.of(arguments));
        return new ProcessBuilder(command);
    }
}
