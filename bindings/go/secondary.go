package windrow

/*
#include "calls.h"
*/
import "C"

import (
	"context"
	"time"
)

// Secondary is a reader of a database that this or another process may have open for writing. Each state that it has read is a
// [DB] that is open for reading and never changes. It keeps the files that its states need in the folder, so close it, and them.
type Secondary struct {
	handle *lease[*C.windrow_secondary]
	// As of databases.
	calls bool
}

// OpenSecondary opens the database in the folder path for reading, also while a process has it open for writing. This process
// must be allowed to write to the folder, because a file there says what it reads.
func OpenSecondary(path string, options *Options) (*Secondary, error) {
	made, err := options.build()
	if err != nil {
		return nil, err
	}
	defer C.windrow_options_free(made)
	var pointer *C.windrow_secondary
	err = withText(path, func(path *C.char, failed **C.windrow_error) {
		C.windrow_open_secondary(path, made, &pointer, failed)
	})
	if err != nil {
		return nil, err
	}
	free := func(pointer *C.windrow_secondary) { C.windrow_secondary_free(pointer) }
	return &Secondary{newLease(pointer, free), options.haveCalls()}, nil
}

// DB returns the newest state that was read.
func (secondary *Secondary) DB() (*DB, error) {
	return secondary.state(func(secondary *C.windrow_secondary, database **C.windrow_database,
		failed **C.windrow_error) {
		C.windrow_secondary_database(secondary, database, failed)
	})
}

// CatchUp reads what was committed since, and returns the newest state. It has every commit that was acknowledged before the
// call. [ErrFellBehind] says that this process was stopped for too long: the next call begins anew. If ctx ends first, its error
// is returned and the work goes on.
func (secondary *Secondary) CatchUp(ctx context.Context) (*DB, error) {
	var db *DB
	err := wait(ctx, func() (err error) {
		db, err = secondary.state(func(secondary *C.windrow_secondary, database **C.windrow_database,
			failed **C.windrow_error) {
			C.windrow_secondary_catch_up(secondary, database, failed)
		})
		return err
	})
	// Work that goes on may still set the state.
	if err != nil {
		return nil, err
	}
	return db, nil
}

func (secondary *Secondary) state(
	call func(*C.windrow_secondary, **C.windrow_database, **C.windrow_error)) (*DB, error) {
	var pointer *C.windrow_database
	err := secondary.with(func(secondary *C.windrow_secondary, failed **C.windrow_error) {
		call(secondary, &pointer, failed)
	})
	if err != nil {
		return nil, err
	}
	return newDB(&database{pointer: pointer, calls: secondary.calls, isState: true}), nil
}

// Follow has the secondary catch up by itself after each interval, until it is closed. What fails there is tried again. A second
// call changes the interval.
func (secondary *Secondary) Follow(interval time.Duration) error {
	return secondary.with(func(secondary *C.windrow_secondary, failed **C.windrow_error) {
		C.windrow_secondary_follow(secondary, milliseconds(interval), failed)
	})
}

// with runs a call with the handle.
func (secondary *Secondary) with(call func(secondary *C.windrow_secondary, failed **C.windrow_error)) error {
	if !secondary.handle.enter() {
		return ErrClosed
	}
	defer secondary.handle.leave()
	var failed *C.windrow_error
	call(secondary.handle.pointer, &failed)
	return failure(failed)
}

// Close frees the secondary. Its states stay open.
func (secondary *Secondary) Close() error {
	secondary.handle.close()
	return nil
}
