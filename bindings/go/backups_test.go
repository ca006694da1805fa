package windrow_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	windrow "github.com/windrow-db/windrow/bindings/go"
)

// restored is the value of the key "a" in the database that a backup gives.
func restored(t *testing.T, backups *windrow.Backups, number uint64) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "restored")
	check(t, backups.Restore(context.Background(), number, path))
	is(t, backups.Restore(context.Background(), number, path), windrow.ErrAlreadyExists)
	db, err := windrow.OpenReadOnly(path, nil)
	check(t, err)
	defer db.Close()
	return get(t, keyspace(t, db, "main"), "a")
}

func TestBackupsAreListedRestoredAndRemoved(t *testing.T) {
	ctx := context.Background()
	db, main := opened(t, nil)
	path := filepath.Join(t.TempDir(), "backups")
	_, err := windrow.OpenBackupsReadOnly(path, nil)
	is(t, err, windrow.ErrNotFound)
	backups, err := windrow.OpenBackups(path, nil)
	check(t, err)
	_, err = windrow.OpenBackups(path, nil)
	is(t, err, windrow.ErrLocked)
	is(t, backups.Restore(ctx, windrow.NewestBackup, t.TempDir()), windrow.ErrNotFound)
	begun := time.Now().Truncate(time.Millisecond)
	for i, value := range []string{"first", "second", "third"} {
		put(t, main, "a", value)
		number, err := db.Backup(ctx, backups)
		check(t, err)
		equal(t, number, uint64(i+1))
	}
	check(t, backups.Verify(ctx))
	equal(t, restored(t, backups, 1), "first")
	equal(t, restored(t, backups, windrow.NewestBackup), "third")
	listed, err := backups.List()
	check(t, err)
	equal(t, len(listed), 3)
	for i, backup := range listed {
		check(t, backup.Err)
		equal(t, backup.Number, uint64(i+1))
		equal(t, backup.Sequence, uint64(i+1))
		if backup.Created.Before(begun) || backup.Files == 0 || backup.Bytes == 0 || backup.OwnBytes > backup.Bytes {
			t.Errorf("%+v", backup)
		}
	}

	removed, err := backups.RemoveOlder(time.Hour)
	check(t, err)
	equal(t, removed, 0)
	_, err = backups.RemoveOlder(-1)
	is(t, err, windrow.ErrInvalidArgument)
	_, err = backups.KeepNewest(0)
	is(t, err, windrow.ErrInvalidArgument)
	removed, err = backups.KeepNewest(2)
	check(t, err)
	equal(t, removed, 1)
	is(t, backups.Remove(1), windrow.ErrNotFound)
	check(t, backups.Remove(windrow.NewestBackup))
	equal(t, restored(t, backups, windrow.NewestBackup), "second")
	check(t, backups.Close())
	check(t, backups.Close())
	_, err = db.Backup(ctx, backups)
	is(t, err, windrow.ErrClosed)
	is(t, backups.Verify(ctx), windrow.ErrClosed)
	is(t, backups.Restore(ctx, 1, t.TempDir()), windrow.ErrClosed)

	backups, err = windrow.OpenBackupsReadOnly(path, &windrow.BackupOptions{BytesPerSecond: 1 << 30})
	check(t, err)
	defer backups.Close()
	number, err := db.Backup(ctx, backups)
	is(t, err, windrow.ErrReadOnly)
	equal(t, number, 0)
	is(t, backups.Remove(2), windrow.ErrReadOnly)
}

func TestADamagedBackupIsNamed(t *testing.T) {
	ctx := context.Background()
	db, main := opened(t, nil)
	path := t.TempDir()
	backups, err := windrow.OpenBackups(path, nil)
	check(t, err)
	defer backups.Close()
	put(t, main, "a", "1")
	for range 2 {
		_, err = db.Backup(ctx, backups)
		check(t, err)
	}
	manifest := filepath.Join(path, "000002.backup")
	bytes, err := os.ReadFile(manifest)
	check(t, err)
	bytes[20] ^= 1
	check(t, os.WriteFile(manifest, bytes, 0o600))
	is(t, backups.Verify(ctx), windrow.ErrCorruption)
	is(t, backups.Restore(ctx, 2, filepath.Join(t.TempDir(), "restored")), windrow.ErrCorruption)
	listed, err := backups.List()
	check(t, err)
	check(t, listed[0].Err)
	is(t, listed[1].Err, windrow.ErrCorruption)
	if !strings.Contains(listed[1].Err.Error(), "000002.backup") {
		t.Error(listed[1].Err)
	}
	equal(t, restored(t, backups, 1), "1")
	check(t, backups.Remove(2))
}

func TestABackupEndsWithItsContextOrDatabase(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	db, err := windrow.Open(t.TempDir(), nil)
	check(t, err)
	backups, err := windrow.OpenBackups(t.TempDir(), nil)
	check(t, err)
	defer backups.Close()
	_, err = db.Backup(ctx, backups)
	is(t, err, context.Canceled)
	is(t, backups.Verify(ctx), context.Canceled)
	is(t, backups.Restore(ctx, 1, t.TempDir()), context.Canceled)
	check(t, db.Close())
	_, err = db.Backup(context.Background(), backups)
	is(t, err, windrow.ErrClosed)
	listed, err := backups.List()
	check(t, err)
	equal(t, len(listed), 0)
}
