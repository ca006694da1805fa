package windrow

/*
#cgo noescape windrow_go_fetch
#cgo nocallback windrow_go_fetch
#include "calls.h"
*/
import "C"

import (
	"bytes"
	"slices"
	"sync"
)

// A session has what one thread at a time may use: a transaction with its cursors, or one cursor of a view. Its lock is
// held by each call. It refers to no object of the package, so that cleanups can have it.
type session struct {
	sync.Mutex
	database *database
	// Nil after the end, and for a view.
	transaction *C.windrow_transaction
	// Those that are not freed yet.
	cursors []*C.windrow_cursor
}

// free frees one cursor, if it is not freed yet.
func (session *session) free(cursor *C.windrow_cursor) {
	session.Lock()
	defer session.Unlock()
	if at := slices.Index(session.cursors, cursor); at >= 0 {
		session.cursors = slices.Delete(session.cursors, at, at+1)
		C.windrow_cursor_free(cursor)
	}
}

// end frees all cursors and returns the transaction, if it has not ended yet. The caller has the lock.
func (session *session) end() *C.windrow_transaction {
	for _, cursor := range session.cursors {
		C.windrow_cursor_free(cursor)
	}
	session.cursors = nil
	transaction := session.transaction
	session.transaction = nil
	return transaction
}

// rollBack ends the session without a commit.
func (session *session) rollBack() {
	session.Lock()
	defer session.Unlock()
	C.windrow_transaction_roll_back(session.end())
}

// A handle is a cursor in its session.
type handle struct {
	session *session
	cursor  *C.windrow_cursor
}

func (handle handle) free() {
	handle.session.free(handle.cursor)
}

// isClosed says whether the cursor was freed, or the database closed. The caller has the lock.
func (handle handle) isClosed() bool {
	return handle.session.database.isClosed.Load() || !slices.Contains(handle.session.cursors, handle.cursor)
}

// with runs a call with the cursor.
func (handle handle) with(call func(cursor *C.windrow_cursor) error) error {
	handle.session.Lock()
	defer handle.session.Unlock()
	if handle.isClosed() {
		return ErrClosed
	}
	return call(handle.cursor)
}

// fetch moves the cursor and copies entries into the buffer: see calls.h.
func (handle handle) fetch(move, step C.uint32_t, key []byte, parts C.uint32_t, limit int,
	buffer []byte) (C.windrow_go_chunk, error) {
	handle.session.Lock()
	defer handle.session.Unlock()
	if handle.isClosed() {
		return C.windrow_go_chunk{}, ErrClosed
	}
	var chunk C.windrow_go_chunk
	if handle.session.database.calls {
		key, into := bytes.Clone(key), make([]byte, len(buffer))
		chunk = C.windrow_go_fetch_calling(handle.cursor, move, step, data(key), C.size_t(len(key)), parts,
			C.size_t(limit), data(into), C.size_t(len(into)))
		copy(buffer, into[:chunk.used])
	} else {
		chunk = C.windrow_go_fetch(handle.cursor, move, step, data(key), C.size_t(len(key)), parts, C.size_t(limit),
			data(buffer), C.size_t(len(buffer)))
	}
	return chunk, failure(chunk.error)
}

// cursor opens a cursor over a range of the view.
func (view *View) cursor(keys Range) (handle, error) {
	keyspace, snapshot, ok := view.enter()
	if !ok {
		return handle{}, ErrClosed
	}
	defer view.leave()
	var cursor *C.windrow_cursor
	var failed *C.windrow_error
	C.windrow_cursor_open(keyspace, snapshot, keys.lend(), &cursor, &failed)
	if err := failure(failed); err != nil {
		return handle{}, err
	}
	return handle{&session{database: view.database, cursors: []*C.windrow_cursor{cursor}}, cursor}, nil
}
