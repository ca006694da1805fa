package io.windrow.kafka.streams.endtoend;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;

/** The application in a process of its own. */
final class Running implements AutoCloseable {
    private static final long PATIENCE_MINUTES = 5;
    private static final String END = "end of the output";

    private final Process process;
    private final BlockingQueue<String> lines = new LinkedBlockingQueue<>();

    /** Starts it; what it logs is added to {@code log}. */
    Running(Path log, String heap, List<String> arguments) throws IOException {
        process = Processes.javaWithOutput(log, heap, Application.class.getName(), arguments.toArray(new String[0]));
        Thread reader = new Thread(() -> {
            try (var output = new BufferedReader(new InputStreamReader(process.getInputStream()))) {
                output.lines().forEach(lines::add);
            } catch (IOException | UncheckedIOException ended) {
                // It was killed.
            }
            lines.add(END);
        });
        reader.setDaemon(true);
        reader.start();
    }

    /** The next line that begins so. */
    String await(String beginning) throws InterruptedException {
        while (true) {
            String line = lines.poll(PATIENCE_MINUTES, TimeUnit.MINUTES);
            if (line == null || line.equals(END) || line.startsWith("state ERROR")) {
                throw new AssertionError("the application does not say \"" + beginning + "\", but " + line);
            }
            if (line.startsWith(beginning)) {
                return line;
            }
        }
    }

    /** Lets one of its threads wait in the middle of a transaction, when it gets events. It says so then. */
    void pause() throws IOException, InterruptedException {
        line();
        await("will pause");
    }

    /** Lets the thread go on. */
    void goOn() throws IOException {
        line();
    }

    private void line() throws IOException {
        process.getOutputStream().write('\n');
        process.getOutputStream().flush();
    }

    void kill() throws InterruptedException {
        process.toHandle().destroyForcibly();
        process.waitFor();
    }

    /** Ends it cleanly. Returns what it says about its restores. */
    String end() throws IOException, InterruptedException {
        process.getOutputStream().close();
        String said = await("ends ").substring("ends ".length());
        if (!process.waitFor(PATIENCE_MINUTES, TimeUnit.MINUTES)) {
            throw new AssertionError("the application does not end");
        }
        return said;
    }

    /** The time of processors that it has had so far. */
    Duration cpu() {
        return process.info().totalCpuDuration().orElseThrow();
    }

    /** The most memory that it has had so far, in MiB. */
    long peakMemory() throws IOException {
        return Files.readAllLines(Path.of("/proc/" + process.pid() + "/status")).stream()
                .filter(it -> it.startsWith("VmHWM:"))
                .mapToLong(it -> Long.parseLong(it.replaceAll("\\D", "")) / 1024)
                .findFirst().orElseThrow();
    }

    @Override
    public void close() {
        process.toHandle().destroyForcibly();
    }
}
