package windrow

/*
#include <stdlib.h>
#include "calls.h"
*/
import "C"

import (
	"context"
	"encoding/json"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// DB is an open database. Close it.
type DB struct {
	handle      *database
	cleanup     runtime.Cleanup
	lockTimeout time.Duration
}

// A database is the handle of C. The close waits for the calls that have it.
type database struct {
	sync.RWMutex
	pointer *C.windrow_database
	// Read without the lock by cursors, whose handles would go on after the close.
	isClosed atomic.Bool
	// Closed by the close, so that loads end.
	closing chan struct{}
	// Held by the close, which must not hold the lock of the calls: functions of Go that still run may make some.
	ending sync.Mutex
	// Whether C may call functions of Go, such as a merge operator.
	calls bool
	// Whether it is a state of a secondary, which others may have, too: it is freed and not closed.
	isState bool
	// The keyspaces that are not freed yet, which callers need not close: the close frees them.
	keyspaces keyspaces
}

// Open opens the database in the folder path, or creates it. Nil options are the defaults. One process has a database open,
// once: others get [ErrLocked].
func Open(path string, options *Options) (*DB, error) {
	return open(path, options, func(path *C.char, options *C.windrow_options, database **C.windrow_database,
		failed **C.windrow_error) {
		C.windrow_open(path, options, database, failed)
	})
}

// OpenReadOnly opens a database for reading only. No call changes the disk. A database has one writer or any number of
// readers.
func OpenReadOnly(path string, options *Options) (*DB, error) {
	return open(path, options, func(path *C.char, options *C.windrow_options, database **C.windrow_database,
		failed **C.windrow_error) {
		C.windrow_open_read_only(path, options, database, failed)
	})
}

func open(path string, options *Options,
	call func(*C.char, *C.windrow_options, **C.windrow_database, **C.windrow_error)) (*DB, error) {
	made, err := options.build()
	if err != nil {
		return nil, err
	}
	defer C.windrow_options_free(made)
	var pointer *C.windrow_database
	err = withText(path, func(path *C.char, failed **C.windrow_error) {
		call(path, made, &pointer, failed)
	})
	if err != nil {
		return nil, err
	}
	db := newDB(&database{pointer: pointer, calls: options.haveCalls()})
	if options != nil && options.LockTimeout != 0 {
		db.lockTimeout = options.LockTimeout
	}
	return db, nil
}

func newDB(handle *database) *DB {
	handle.closing = make(chan struct{})
	db := &DB{handle: handle, lockTimeout: time.Second}
	db.cleanup = runtime.AddCleanup(db, forget, handle)
	return db
}

// forget releases a database that nobody has closed. It may have to wait for the disk, so other cleanups go on.
func forget(handle *database) {
	go func() {
		handle.Lock()
		defer handle.Unlock()
		C.windrow_database_free(handle.pointer)
		handle.pointer = nil
	}()
}

// Destroy removes the database in the folder path with all its entries. A missing database is no error. The folder stays,
// with its file LOCK and with files of others.
func Destroy(path string) error {
	return withText(path, func(path *C.char, failed **C.windrow_error) { C.windrow_destroy(path, failed) })
}

// Close makes all writes durable and closes the database. It waits for running calls of the DB. All its keyspaces,
// snapshots, cursors and transactions return [ErrClosed] from now on, and so do bulk loads that run.
func (db *DB) Close() error {
	handle := db.handle
	handle.ending.Lock()
	defer handle.ending.Unlock()
	if handle.isClosed.Swap(true) {
		return nil
	}
	close(handle.closing)
	db.cleanup.Stop()
	handle.Lock()
	pointer := handle.pointer
	handle.pointer = nil
	handle.Unlock()
	handle.keyspaces.close()
	if handle.isState {
		C.windrow_database_free(pointer)
		return nil
	}
	var failed *C.windrow_error
	C.windrow_close(pointer, &failed)
	return failure(failed)
}

// with runs a call with the handle.
func (db *DB) with(call func(database *C.windrow_database, failed **C.windrow_error)) error {
	defer runtime.KeepAlive(db)
	handle := db.handle
	handle.RLock()
	defer handle.RUnlock()
	if handle.pointer == nil {
		return ErrClosed
	}
	var failed *C.windrow_error
	call(handle.pointer, &failed)
	return failure(failed)
}

// withText runs a call with the handle and a text.
func (db *DB) withText(text string, call func(*C.windrow_database, *C.char, **C.windrow_error)) error {
	return db.withTexts(text, "", func(database *C.windrow_database, text, _ *C.char, failed **C.windrow_error) {
		call(database, text, failed)
	})
}

func (db *DB) withTexts(first, second string,
	call func(database *C.windrow_database, first, second *C.char, failed **C.windrow_error)) error {
	defer runtime.KeepAlive(db)
	handle := db.handle
	handle.RLock()
	defer handle.RUnlock()
	if handle.pointer == nil {
		return ErrClosed
	}
	return withTexts(first, second, func(first, second *C.char, failed **C.windrow_error) {
		call(handle.pointer, first, second, failed)
	})
}

// Keyspace opens the keyspace name with its recorded options, or creates it.
func (db *DB) Keyspace(name string) (*Keyspace, error) {
	return db.keyspace(name, func(database *C.windrow_database, name *C.char, keyspace **C.windrow_keyspace,
		failed **C.windrow_error) {
		C.windrow_keyspace_open(database, name, keyspace, failed)
	})
}

// KeyspaceWith opens the keyspace name and sets its options, or creates it with them.
func (db *DB) KeyspaceWith(name string, options *KeyspaceOptions) (*Keyspace, error) {
	made, err := options.build()
	if err != nil {
		return nil, err
	}
	defer C.windrow_keyspace_options_free(made)
	return db.keyspace(name, func(database *C.windrow_database, name *C.char, keyspace **C.windrow_keyspace,
		failed **C.windrow_error) {
		C.windrow_keyspace_open_with(database, name, made, keyspace, failed)
	})
}

// ExistingKeyspace opens the keyspace name. If it does not exist, the error is [ErrNotFound].
func (db *DB) ExistingKeyspace(name string) (*Keyspace, error) {
	return db.keyspace(name, func(database *C.windrow_database, name *C.char, keyspace **C.windrow_keyspace,
		failed **C.windrow_error) {
		C.windrow_keyspace_open_existing(database, name, keyspace, failed)
	})
}

func (db *DB) keyspace(name string,
	call func(*C.windrow_database, *C.char, **C.windrow_keyspace, **C.windrow_error)) (*Keyspace, error) {
	var pointer *C.windrow_keyspace
	err := db.withText(name, func(database *C.windrow_database, name *C.char, failed **C.windrow_error) {
		call(database, name, &pointer, failed)
	})
	if err != nil {
		return nil, err
	}
	if pointer == nil {
		return nil, &Error{Kind: ErrNotFound, Message: "there is no keyspace \"" + name + "\"", Keyspace: name}
	}
	return newKeyspace(db.handle, pointer), nil
}

// Keyspaces returns the names of all keyspaces, sorted.
func (db *DB) Keyspaces() ([]string, error) {
	var text *C.char
	err := db.with(func(database *C.windrow_database, failed **C.windrow_error) {
		C.windrow_keyspace_names_json(database, &text, failed)
	})
	if err != nil {
		return nil, err
	}
	var names []string
	err = json.Unmarshal(taken(text), &names)
	return names, err
}

// DropKeyspace drops the keyspace name with all its entries.
func (db *DB) DropKeyspace(name string) error {
	return db.withText(name, func(database *C.windrow_database, name *C.char, failed **C.windrow_error) {
		C.windrow_keyspace_drop(database, name, failed)
	})
}

// SwapKeyspaces exchanges the names of two keyspaces in one step.
func (db *DB) SwapKeyspaces(first, second string) error {
	return db.withTexts(first, second,
		func(database *C.windrow_database, first, second *C.char, failed **C.windrow_error) {
			C.windrow_keyspaces_swap(database, first, second, failed)
		})
}

// Stats returns the statistics as a JSON object: counters since the open, memory, and the levels of each keyspace.
func (db *DB) Stats() (json.RawMessage, error) {
	var text *C.char
	err := db.with(func(database *C.windrow_database, failed **C.windrow_error) {
		C.windrow_stats_json(database, &text, failed)
	})
	if err != nil {
		return nil, err
	}
	return taken(text), nil
}

// taken takes over a text of C.
func taken(text *C.char) []byte {
	defer C.windrow_text_free(text)
	return []byte(C.GoString(text))
}

// Persist makes all writes so far durable: they survive a power failure. If ctx ends first, its error is returned and the
// work goes on. So do the calls below.
func (db *DB) Persist(ctx context.Context) error {
	return wait(ctx, func() error {
		return db.with(func(database *C.windrow_database, failed **C.windrow_error) {
			C.windrow_persist(database, failed)
		})
	})
}

// Flush writes all memtables to tables and waits until they are durable.
func (db *DB) Flush(ctx context.Context) error {
	return wait(ctx, func() error {
		return db.with(func(database *C.windrow_database, failed **C.windrow_error) {
			C.windrow_flush(database, failed)
		})
	})
}

// WaitIdle waits until no background work is due.
func (db *DB) WaitIdle(ctx context.Context) error {
	return wait(ctx, func() error {
		return db.with(func(database *C.windrow_database, failed **C.windrow_error) {
			C.windrow_wait_idle(database, failed)
		})
	})
}

// Verify checks every block and every value, and returns the first damage as an error.
func (db *DB) Verify(ctx context.Context) error {
	return wait(ctx, func() error {
		return db.with(func(database *C.windrow_database, failed **C.windrow_error) {
			C.windrow_verify(database, failed)
		})
	})
}

// Checkpoint makes a copy of the database in the folder path, which is empty or missing. Files are linked where that is
// possible. The copy has all writes so far and is durable at the return.
func (db *DB) Checkpoint(ctx context.Context, path string) error {
	return wait(ctx, func() error {
		return db.withText(path, func(database *C.windrow_database, path *C.char, failed **C.windrow_error) {
			C.windrow_checkpoint(database, path, failed)
		})
	})
}

// Write writes a batch as one: a reader sees all of it or nothing, and so does an open after a crash. The batch is
// unchanged and can be written again. The first fault of its writes is the error, and then nothing is written.
func (db *DB) Write(batch *Batch, durability ...Durability) error {
	if batch.fault != nil {
		return batch.fault
	}
	keyspaces, ok := enterAll(batch.keyspaces, make([]*C.windrow_keyspace, 0, 8))
	if !ok {
		return ErrClosed
	}
	defer leaveAll(batch.keyspaces)
	defer runtime.KeepAlive(db)
	handle := db.handle
	handle.RLock()
	defer handle.RUnlock()
	if handle.pointer == nil {
		return ErrClosed
	}
	return failure(batch.write(handle, keyspaces, last(durability)))
}

// enterAll takes the handles of keyspaces for a call, which ends with leaveAll, and appends them.
func enterAll(keyspaces []*lease[*C.windrow_keyspace], handles []*C.windrow_keyspace) ([]*C.windrow_keyspace, bool) {
	for i, keyspace := range keyspaces {
		if !keyspace.enter() {
			leaveAll(keyspaces[:i])
			return nil, false
		}
		handles = append(handles, keyspace.pointer)
	}
	return handles, true
}

func leaveAll(keyspaces []*lease[*C.windrow_keyspace]) {
	for _, keyspace := range keyspaces {
		keyspace.leave()
	}
}

// withAll runs a call with the handle and those of keyspaces.
func (db *DB) withAll(keyspaces []*Keyspace,
	call func(database *C.windrow_database, keyspaces []*C.windrow_keyspace, failed **C.windrow_error)) error {
	leases := make([]*lease[*C.windrow_keyspace], len(keyspaces))
	for i, keyspace := range keyspaces {
		leases[i] = keyspace.keyspace
	}
	handles, ok := enterAll(leases, nil)
	if !ok {
		return ErrClosed
	}
	defer leaveAll(leases)
	return db.with(func(database *C.windrow_database, failed **C.windrow_error) { call(database, handles, failed) })
}

// Snapshot keeps the present state of all keyspaces readable: see [Keyspace.At]. Close it.
func (db *DB) Snapshot() (*Snapshot, error) {
	var pointer *C.windrow_snapshot
	err := db.with(func(database *C.windrow_database, failed **C.windrow_error) {
		C.windrow_snapshot_new(database, &pointer, failed)
	})
	if err != nil {
		return nil, err
	}
	return newSnapshot(pointer), nil
}
