package windrow

/*
#include "calls.h"
*/
import "C"

import (
	"runtime"
	"time"
)

// Cursor is a position among the entries of a range in one state. A new cursor has no position. It may change its direction
// at any step. A move past either end leaves it without a position until the next seek. Close it: it keeps the files that
// it reads, and so their disk space.
type Cursor struct {
	handle  handle
	cleanup runtime.Cleanup
	// Keeps the transaction from the garbage collector.
	transaction *Transaction
	// Of a merged cursor.
	keyspaces []*Keyspace
	// Nil without a position.
	key      []byte
	keyspace int
	err      error
}

// Cursor opens a cursor over a range, in the state of the view at this moment.
func (view *View) Cursor(keys Range) (*Cursor, error) {
	handle, err := view.cursor(keys)
	if err != nil {
		return nil, err
	}
	return newCursor(handle, nil), nil
}

func newCursor(of handle, transaction *Transaction) *Cursor {
	cursor := &Cursor{handle: of, transaction: transaction}
	cursor.cleanup = runtime.AddCleanup(cursor, handle.forget, of)
	return cursor
}

// First moves to the first entry, and says whether it exists. So do all moves. After false, see Err.
func (cursor *Cursor) First() bool {
	return cursor.move(C.WINDROW_GO_FIRST, nil)
}

// Last moves to the last entry.
func (cursor *Cursor) Last() bool {
	return cursor.move(C.WINDROW_GO_LAST, nil)
}

// Next moves to the next entry.
func (cursor *Cursor) Next() bool {
	return cursor.move(C.WINDROW_GO_NEXT, nil)
}

// Previous moves to the previous entry.
func (cursor *Cursor) Previous() bool {
	return cursor.move(C.WINDROW_GO_PREVIOUS, nil)
}

// Seek moves to the first entry whose key is key or greater.
func (cursor *Cursor) Seek(key []byte) bool {
	return cursor.move(C.WINDROW_GO_SEEK, key)
}

// SeekBefore moves to the last entry whose key is less than key.
func (cursor *Cursor) SeekBefore(key []byte) bool {
	if cursor.Seek(key) {
		return cursor.Previous()
	}
	return cursor.err == nil && cursor.Last()
}

func (cursor *Cursor) move(move C.uint32_t, key []byte) bool {
	defer runtime.KeepAlive(cursor)
	var buffer [entryHeader + 256]byte
	into := buffer[:]
	parts := C.uint32_t(0)
	if cursor.keyspaces != nil {
		parts = withKeyspaces
	}
	for {
		chunk, err := cursor.handle.fetch(move, move, key, parts, oneByOne, into)
		cursor.key, cursor.err = nil, err
		if err != nil || bool(chunk.has_ended) {
			return false
		}
		if chunk.count == 1 {
			entry, keyspace, _ := split(into)
			cursor.keyspace = keyspace
			cursor.key = append(make([]byte, 0, len(entry.Key)), entry.Key...)
			return true
		}
		move, into = C.WINDROW_GO_STAY, make([]byte, chunk.needed)
	}
}

// Err is the error of the last move, or nil.
func (cursor *Cursor) Err() error {
	return cursor.err
}

// Valid says whether the cursor is at an entry.
func (cursor *Cursor) Valid() bool {
	return cursor.key != nil
}

// Key is the key of the entry, and nil if the cursor is at none. It stays valid.
func (cursor *Cursor) Key() []byte {
	return cursor.key
}

// Value reads the value of the entry; nil if the cursor is at none. It stays valid.
func (cursor *Cursor) Value() ([]byte, error) {
	defer runtime.KeepAlive(cursor)
	var value []byte
	err := cursor.handle.with(func(pointer *C.windrow_cursor) error {
		var bytes C.windrow_bytes
		var failed *C.windrow_error
		C.windrow_cursor_value(pointer, &bytes, &failed)
		value = copied(bytes)
		return failure(failed)
	})
	return value, err
}

// ExpiresAt is when the entry expires: the zero time if it never does, and if the cursor is at none.
func (cursor *Cursor) ExpiresAt() (time.Time, error) {
	defer runtime.KeepAlive(cursor)
	var at time.Time
	err := cursor.handle.with(func(pointer *C.windrow_cursor) error {
		at = expiry(C.windrow_cursor_expires_at(pointer))
		return nil
	})
	return at, err
}

// Keyspace is the keyspace of the entry of a merged cursor: see [DB.MergedCursor]. It is nil for other cursors, and if the
// cursor is at no entry.
func (cursor *Cursor) Keyspace() *Keyspace {
	if cursor.keyspaces == nil || cursor.key == nil {
		return nil
	}
	return cursor.keyspaces[cursor.keyspace]
}

// Close releases the cursor. Its moves fail with [ErrClosed] from now on.
func (cursor *Cursor) Close() error {
	cursor.cleanup.Stop()
	cursor.handle.free()
	return nil
}
