package windrow

/*
#include "calls.h"
*/
import "C"

import (
	"iter"
	"slices"
	"unsafe"
)

// MergedEntry is an entry with its keyspace.
type MergedEntry struct {
	Entry
	Keyspace *Keyspace
}

// Merged are the entries of a range in several keyspaces, in the order of their keys, all in the state at the begin of the
// iteration. A key that several keyspaces have comes once for each, in the order of the arguments. Otherwise it is as
// [View.Entries].
func (db *DB) Merged(keys Range, keyspaces ...*Keyspace) iter.Seq2[MergedEntry, error] {
	keyspaces = slices.Clone(keyspaces)
	return func(yield func(MergedEntry, error) bool) {
		walk(func() (handle, error) { return db.merged(keys, keyspaces) }, forwards, withValues|withKeyspaces, readAhead,
			func(entry Entry, keyspace int, err error) bool {
				if err != nil {
					return yield(MergedEntry{}, err)
				}
				return yield(MergedEntry{entry, keyspaces[keyspace]}, nil)
			})
	}
}

// MergedCursor opens a cursor over a range of several keyspaces: see [DB.Merged]. [Cursor.Keyspace] is the keyspace of an
// entry.
func (db *DB) MergedCursor(keys Range, keyspaces ...*Keyspace) (*Cursor, error) {
	handle, err := db.merged(keys, keyspaces)
	if err != nil {
		return nil, err
	}
	cursor := newCursor(handle, nil)
	cursor.keyspaces = append(make([]*Keyspace, 0, len(keyspaces)), keyspaces...)
	return cursor, nil
}

func (db *DB) merged(keys Range, keyspaces []*Keyspace) (handle, error) {
	var cursor *C.windrow_cursor
	err := db.withAll(keyspaces, func(database *C.windrow_database, keyspaces []*C.windrow_keyspace,
		failed **C.windrow_error) {
		C.windrow_cursor_open_merged(database, unsafe.SliceData(keyspaces), C.size_t(len(keyspaces)), keys.lend(),
			&cursor, failed)
	})
	if err != nil {
		return handle{}, err
	}
	return (&session{database: db.handle}).add(cursor), nil
}
