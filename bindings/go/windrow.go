// Package windrow is an embedded, ordered, persistent key-value store. A database is a folder, and a keyspace of it maps
// keys to values in the order of the keys' bytes. Keys have 1 byte to 64 KiB, values up to 1 GiB.
//
//	db, err := windrow.Open("folder", nil)
//	if err != nil {
//		return err
//	}
//	defer db.Close()
//	planets, err := db.Keyspace("planets")
//	if err != nil {
//		return err
//	}
//	if err := planets.Put([]byte("earth"), []byte("one moon")); err != nil {
//		return err
//	}
//	for entry, err := range planets.Entries(windrow.All) {
//		if err != nil {
//			return err
//		}
//		fmt.Printf("%s: %s\n", entry.Key, entry.Value)
//	}
//
// Bytes that a function is given are copied before it returns. Bytes that it returns belong to the caller. Bytes that are
// passed to a function of the caller, such as a merge operator, are valid until it returns, and must not be changed.
//
// Goroutines. Any number of goroutines may use a [DB], a [Keyspace], a [View], a [Snapshot] and a [Transaction], whose
// calls run one after the other. A [Cursor] and a [Batch] belong to one goroutine at a time. Close may be called at any time, by any goroutine, and more than once: later calls of the object
// return [ErrClosed], and nothing else happens.
//
// Release. [DB.Close] is a must: it makes all writes durable, and reports errors. Snapshots, cursors and transactions hold
// memory and files, so end them with Close, Commit or Rollback. The garbage collector releases what is forgotten, at some
// time. A [Keyspace] may be left to it.
//
// Errors. Each is an [*Error] with a [Kind], or a Kind alone: compare by [errors.Is] with the constants, such as
// [ErrConflict].
//
// Durability. Writes survive the end of the process; with [Sync], as an argument of the write or in [Options], they survive
// a power failure, too.
package windrow

/*
#cgo LDFLAGS: -lwindrow
#include "calls.h"
*/
import "C"

import (
	"context"
	"time"
	"unsafe"
)

// Version is the version of the library, for example "0.1.0".
func Version() string {
	return C.GoString(C.windrow_version())
}

// Durability says what a write survives.
type Durability uint32

const (
	// Default is the durability that the options of the database name.
	Default Durability = C.WINDROW_DURABILITY_DEFAULT
	// Buffered writes survive the end of the process, but not a power failure.
	Buffered Durability = C.WINDROW_DURABILITY_BUFFERED
	// Sync writes survive a power failure: the log is synced before the call returns.
	Sync Durability = C.WINDROW_DURABILITY_SYNC
)

// last is the durability of a write, whose callers may name one.
func last(durability []Durability) C.uint32_t {
	if len(durability) == 0 {
		return C.WINDROW_DURABILITY_DEFAULT
	}
	return C.uint32_t(durability[len(durability)-1])
}

// Range has the keys from Start on and before End. A nil bound is none.
type Range struct {
	Start, End []byte
}

// All is the range of all keys.
var All = Range{}

// Prefix is the range of the keys that begin with prefix.
func Prefix(prefix []byte) Range {
	for length := len(prefix); length > 0; length-- {
		if prefix[length-1] != 0xff {
			end := append([]byte(nil), prefix[:length]...)
			end[length-1]++
			return Range{Start: prefix, End: end}
		}
	}
	return Range{Start: prefix}
}

// An Entry is a key with its value.
type Entry struct {
	Key, Value []byte
}

// data is the first byte for C, which has no use for it after the call. It is null for nil alone.
func data(bytes []byte) *C.uint8_t {
	return (*C.uint8_t)(unsafe.SliceData(bytes))
}

// lend gives bytes to C for one call.
func lend(bytes []byte) C.windrow_bytes {
	return C.windrow_bytes{data: data(bytes), length: C.size_t(len(bytes))}
}

func (r Range) lend() C.windrow_range {
	return C.windrow_range{start: lend(r.Start), end: lend(r.End)}
}

// copied takes over bytes that C lends. It is nil for a null pointer.
func copied(bytes C.windrow_bytes) []byte {
	if bytes.data == nil {
		return nil
	}
	taken := make([]byte, bytes.length)
	copy(taken, unsafe.Slice((*byte)(bytes.data), bytes.length))
	return taken
}

// borrowed are bytes that C lends, in place. It is nil for a null pointer.
func borrowed(bytes C.windrow_bytes) []byte {
	return unsafe.Slice((*byte)(bytes.data), bytes.length)
}

// expiry is the moment that C names: the zero time for none.
func expiry(milliseconds C.uint64_t) time.Time {
	if milliseconds == C.WINDROW_EXPIRY_ABSENT || milliseconds == C.WINDROW_EXPIRY_NEVER {
		return time.Time{}
	}
	return time.UnixMilli(int64(milliseconds))
}

// wait runs work that nobody can interrupt, and returns before it ends if ctx does.
func wait(ctx context.Context, work func() error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if ctx.Done() == nil {
		return work()
	}
	done := make(chan error, 1)
	go func() { done <- work() }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}
