package windrow

/*
#include "calls.h"
*/
import "C"

import (
	"context"
	"encoding/json"
	"time"
)

// NewestBackup stands for the number of the newest backup.
const NewestBackup uint64 = C.WINDROW_BACKUP_NEWEST

// Backups are backups of a database in a folder: see [DB.Backup]. One call at a time works, and others wait. Close them.
type Backups struct {
	handle *lease[*C.windrow_backups]
}

// BackupOptions say how backups are made, verified and restored.
type BackupOptions struct {
	// BytesPerSecond bounds what each call reads, for a disk that other programs use, too. 0 is no bound.
	BytesPerSecond uint64
}

// Backup is a backup of a list.
type Backup struct {
	Number uint64
	// Err says why the backup cannot be used. Then the rest is zero.
	Err     error
	Created time.Time
	// Sequence is the newest sequence number that it holds.
	Sequence uint64
	// Files and Bytes are those of the database.
	Files, Bytes uint64
	// OwnBytes are those that no other backup needs.
	OwnBytes uint64
}

// OpenBackups opens the folder path of backups, or creates it. Nil options are the defaults. One [Backups] has the folder,
// once: others get [ErrLocked]. Each database has a folder of its own.
func OpenBackups(path string, options *BackupOptions) (*Backups, error) {
	return openBackups(path, options, func(path *C.char, rate C.uint64_t, backups **C.windrow_backups,
		failed **C.windrow_error) {
		C.windrow_backups_open(path, rate, backups, failed)
	})
}

// OpenBackupsReadOnly opens backups to list, verify and restore them. Others may do the same.
func OpenBackupsReadOnly(path string, options *BackupOptions) (*Backups, error) {
	return openBackups(path, options, func(path *C.char, rate C.uint64_t, backups **C.windrow_backups,
		failed **C.windrow_error) {
		C.windrow_backups_open_read_only(path, rate, backups, failed)
	})
}

func openBackups(path string, options *BackupOptions,
	call func(*C.char, C.uint64_t, **C.windrow_backups, **C.windrow_error)) (*Backups, error) {
	var rate C.uint64_t
	if options != nil {
		rate = C.uint64_t(options.BytesPerSecond)
	}
	var pointer *C.windrow_backups
	err := withText(path, func(path *C.char, failed **C.windrow_error) { call(path, rate, &pointer, failed) })
	if err != nil {
		return nil, err
	}
	free := func(pointer *C.windrow_backups) { C.windrow_backups_free(pointer) }
	return &Backups{newLease(pointer, free)}, nil
}

// Close lets others have the folder, once the calls that run have ended.
func (backups *Backups) Close() error {
	backups.handle.close()
	return nil
}

// with runs a call with the handle.
func (backups *Backups) with(call func(backups *C.windrow_backups, failed **C.windrow_error)) error {
	if !backups.handle.enter() {
		return ErrClosed
	}
	defer backups.handle.leave()
	var failed *C.windrow_error
	call(backups.handle.pointer, &failed)
	return failure(failed)
}

// Backup makes a backup of the database as of one moment during the call, with all writes that were acknowledged before, and
// returns its number. It copies what the folder does not have yet. The backup is durable at the return, and after an error
// it does not exist. If ctx ends first, its error is returned and the work goes on. [DB.Close] waits for it.
func (db *DB) Backup(ctx context.Context, backups *Backups) (uint64, error) {
	var number C.uint64_t
	err := wait(ctx, func() error {
		if !backups.handle.enter() {
			return ErrClosed
		}
		defer backups.handle.leave()
		return db.with(func(database *C.windrow_database, failed **C.windrow_error) {
			C.windrow_backup(database, backups.handle.pointer, &number, failed)
		})
	})
	// Work that goes on may still set the number.
	if err != nil {
		return 0, err
	}
	return uint64(number), nil
}

// List returns the backups, oldest first, also those that cannot be used.
func (backups *Backups) List() ([]Backup, error) {
	var text *C.char
	err := backups.with(func(backups *C.windrow_backups, failed **C.windrow_error) {
		C.windrow_backups_list_json(backups, &text, failed)
	})
	if err != nil {
		return nil, err
	}
	var listed []struct {
		Number, Created, Sequence, Files, Bytes uint64
		OwnBytes                                uint64 `json:"own_bytes"`
		Code                                    int32
		Error                                   string
	}
	if err := json.Unmarshal(taken(text), &listed); err != nil {
		return nil, err
	}
	made := make([]Backup, len(listed))
	for i, backup := range listed {
		made[i] = Backup{Number: backup.Number}
		if backup.Error != "" {
			made[i].Err = &Error{Kind: Kind(backup.Code), Message: backup.Error}
			continue
		}
		made[i].Created = time.UnixMilli(int64(backup.Created))
		made[i].Sequence, made[i].Files = backup.Sequence, backup.Files
		made[i].Bytes, made[i].OwnBytes = backup.Bytes, backup.OwnBytes
	}
	return made, nil
}

// Verify reads all bytes of all backups and compares them with their checksums. It returns the first damage as an error.
// If ctx ends first, its error is returned and the work goes on.
func (backups *Backups) Verify(ctx context.Context) error {
	return wait(ctx, func() error {
		return backups.with(func(backups *C.windrow_backups, failed **C.windrow_error) {
			C.windrow_backups_verify(backups, failed)
		})
	})
}

// Restore writes the database of the backup number, or of [NewestBackup], to the folder path, which is empty or missing. All
// bytes are checked on the way. The database is durable at the return, and after an error there is none. If ctx ends first,
// its error is returned and the work goes on.
func (backups *Backups) Restore(ctx context.Context, number uint64, path string) error {
	return wait(ctx, func() error {
		if !backups.handle.enter() {
			return ErrClosed
		}
		defer backups.handle.leave()
		return withText(path, func(path *C.char, failed **C.windrow_error) {
			C.windrow_backups_restore(backups.handle.pointer, C.uint64_t(number), path, failed)
		})
	})
}

// KeepNewest removes all backups but this many of the newest, at least 1, and the bytes that no other backup needs. It
// returns how many backups were removed.
func (backups *Backups) KeepNewest(count uint) (uint64, error) {
	return backups.purge(func(backups *C.windrow_backups, removed *C.uint64_t, failed **C.windrow_error) {
		C.windrow_backups_keep_newest(backups, C.size_t(count), removed, failed)
	})
}

// RemoveOlder removes the backups that were made longer ago than age, except the newest one. It returns how many were
// removed.
func (backups *Backups) RemoveOlder(age time.Duration) (uint64, error) {
	if age < 0 {
		return 0, invalid("the age of backups is negative: %v", age)
	}
	return backups.purge(func(backups *C.windrow_backups, removed *C.uint64_t, failed **C.windrow_error) {
		C.windrow_backups_remove_older(backups, C.uint64_t(age.Milliseconds()), removed, failed)
	})
}

func (backups *Backups) purge(call func(*C.windrow_backups, *C.uint64_t, **C.windrow_error)) (uint64, error) {
	var removed C.uint64_t
	err := backups.with(func(backups *C.windrow_backups, failed **C.windrow_error) {
		call(backups, &removed, failed)
	})
	return uint64(removed), err
}

// Remove removes the backup number, or [NewestBackup], whatever its state.
func (backups *Backups) Remove(number uint64) error {
	return backups.with(func(backups *C.windrow_backups, failed **C.windrow_error) {
		C.windrow_backups_remove(backups, C.uint64_t(number), failed)
	})
}
