package io.windrow.kafka.streams;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Random;
import org.apache.kafka.common.utils.Utils;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** A process is killed while it writes and commits. Afterwards the stores have exactly what a commit had. */
class KillTest {
    private static final int KILLS = Integer.getInteger("windrow.kills", 8);

    @TempDir
    Path folder;

    @Test
    void afterAKillTheStoresHaveTheirLastCommit() throws Exception {
        Random random = new Random(7);
        long last = -1;
        long lastRestored = -1;
        long restoredMax = -1;
        for (int kill = 0; kill < KILLS; kill++) {
            Progress progress = runAndKill(kill, random.nextInt(15));
            Victim victim = Victim.in(folder.toFile());
            long countsNow = victim.last(victim.counts.committedOffset(Victim.CHANGELOG));
            long windowsNow = victim.last(victim.windows.committedOffset(Victim.CHANGELOG));
            String what = "kill " + kill + " after " + progress;
            long manyNow = victim.last(victim.many.committedOffset(Victim.CHANGELOG));
            for (long now : List.of(countsNow, windowsNow, manyNow)) {
                assertTrue(now >= Math.max(last, progress.committed) && now <= Math.max(last, progress.begun), what);
            }
            assertEquals(Victim.model(countsNow), Victim.contents(victim.counts), what);
            assertEquals(Victim.windowModel(windowsNow), victim.windowContents(), what);
            assertEquals(Victim.manyModel(manyNow), victim.manyContents(), what);
            long restoredNow = victim.last(victim.restored.committedOffset(Victim.CHANGELOG));
            assertTrue(restoredNow >= lastRestored && restoredNow <= Math.max(lastRestored, progress.begun), what);
            assertEquals(Victim.model(restoredNow), Victim.contents(victim.restored), what);
            restoredMax = Math.max(restoredMax, restoredNow);
            victim.close();
            last = countsNow;
            lastRestored = restoredNow;
            // After a kill between two commits of one step the stores begin anew: the steps of all of them are the same.
            if (countsNow != windowsNow || countsNow != manyNow) {
                last = -1;
                lastRestored = -1;
                deleteStores();
            }
        }
        assertTrue(restoredMax > 0, "some commit of a restore was persisted");
    }

    private record Progress(long begun, long committed) {}

    /** Kills the process a little after it has begun its commit of this number. */
    private Progress runAndKill(int seed, int commits) throws IOException, InterruptedException {
        Process process = new ProcessBuilder(
                Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                "-Xmx64m",
                "-cp",
                System.getProperty("java.class.path"),
                Victim.class.getName(),
                folder.toString(),
                String.valueOf(seed))
                .redirectError(ProcessBuilder.Redirect.INHERIT)
                .start();
        long begun = -1;
        long committed = -1;
        try (BufferedReader output = new BufferedReader(new InputStreamReader(process.getInputStream()))) {
            boolean isKilled = false;
            for (String line = output.readLine(); line != null; line = output.readLine()) {
                if (line.startsWith("begins ")) {
                    begun = Long.parseLong(line.substring(7));
                    if (commits-- <= 0 && !isKilled) {
                        Thread.sleep(0, new Random(seed).nextInt(999_999));
                        // Not of the process, which would close its output.
                        process.toHandle().destroyForcibly();
                        isKilled = true;
                    }
                } else if (line.startsWith("committed ")) {
                    committed = Long.parseLong(line.substring(10));
                }
            }
        }
        process.waitFor();
        return new Progress(begun, committed);
    }

    private void deleteStores() throws IOException {
        Utils.delete(folder.resolve("windrow").toFile());
        assertTrue(Files.notExists(folder.resolve("windrow")));
    }
}
