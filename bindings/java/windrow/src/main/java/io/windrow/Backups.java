package io.windrow;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;

/** The backups in a folder, which {@link Database#backup} makes. They share what they have in common. */
public final class Backups {
    // What a purge removes, as the native library knows it.
    private static final int KEEP_NEWEST = 0;
    private static final int OLDER_THAN = 1;
    private static final int ONE = 2;

    /**
     * A backup.
     *
     * @param number its number
     * @param created when it was made
     * @param files the files of the database
     * @param bytes the bytes of these files
     * @param ownBytes the bytes that no other backup needs
     * @param usable whether it can be restored, as far as a list sees
     */
    public record Backup(long number, Instant created, long files, long bytes, long ownBytes, boolean usable) {}

    private final byte[] folder;

    private Backups(Path folder) {
        this.folder = folder.toString().getBytes(UTF_8);
    }

    /** The backups in {@code folder}. */
    public static Backups in(Path folder) {
        return new Backups(folder);
    }

    /** All backups, oldest first. */
    public List<Backup> list() {
        Unpacked from = new Unpacked(Native.listBackups(folder));
        List<Backup> backups = new ArrayList<>();
        while (from.hasMore()) {
            backups.add(new Backup(
                    from.takeLong(),
                    Instant.ofEpochMilli(from.takeLong()),
                    from.takeLong(),
                    from.takeLong(),
                    from.takeLong(),
                    from.takeLong() == 1));
        }
        return backups;
    }

    /** Reads all backups. Returns a sentence for each damage. */
    public List<String> verify() {
        return Unpacked.texts(Native.verifyBackups(folder, -1));
    }

    /** Restores a backup to {@code target}, which is empty or missing. */
    public void restore(long number, Path target) {
        Native.restoreBackup(folder, number, target.toString().getBytes(UTF_8));
    }

    /** Removes all but the newest {@code count} backups, of which there is at least one. */
    public void keepNewest(int count) {
        Native.purgeBackups(folder, KEEP_NEWEST, count);
    }

    /** Removes the backups that are older. The newest one stays. */
    public void removeOlderThan(Duration age) {
        Native.purgeBackups(folder, OLDER_THAN, age.toMillis());
    }

    /** Removes one backup. */
    public void remove(long number) {
        Native.purgeBackups(folder, ONE, number);
    }

    byte[] folder() {
        return folder;
    }
}
