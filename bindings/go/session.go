package windrow

/*
#cgo noescape windrow_go_fetch
#cgo nocallback windrow_go_fetch
#include "calls.h"
*/
import "C"

import (
	"bytes"
	"context"
	"sync"
)

// A session has what one thread at a time may use: a transaction with its cursors, or one cursor of a view. Its lock is
// held by each call. It refers to no object of the package, so that cleanups can have it.
type session struct {
	sync.Mutex
	database *database
	// Ends the calls of a locking transaction and of its cursors. Nil for a view.
	ctx context.Context
	// Nil after the end, and for a view.
	transaction *C.windrow_transaction
	// Those that are not freed yet, by their numbers. No number is used again, as the address of a freed cursor may be.
	cursors map[uint64]*C.windrow_cursor
	// How many cursors there have been.
	opened uint64
}

// add takes over a cursor. The caller has the lock, or nobody else has the session.
func (session *session) add(cursor *C.windrow_cursor) handle {
	if session.cursors == nil {
		session.cursors = make(map[uint64]*C.windrow_cursor)
	}
	session.opened++
	session.cursors[session.opened] = cursor
	return handle{session, session.opened}
}

// free frees one cursor, if it is not freed yet.
func (session *session) free(number uint64) {
	session.Lock()
	defer session.Unlock()
	if cursor, ok := session.cursors[number]; ok {
		delete(session.cursors, number)
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

// forget ends the session for the garbage collector. It may take a while, so other cleanups go on.
func (session *session) forget() {
	go session.rollBack()
}

// A handle is a cursor in its session.
type handle struct {
	session *session
	number  uint64
}

func (handle handle) free() {
	handle.session.free(handle.number)
}

// forget frees the cursor for the garbage collector. Another call may have the lock and wait, so other cleanups go on.
func (handle handle) forget() {
	go handle.free()
}

// cursor is the cursor, if it was not freed, the database is open, and the context has not ended. The caller has the lock.
func (handle handle) cursor() (*C.windrow_cursor, error) {
	session := handle.session
	cursor := session.cursors[handle.number]
	if cursor == nil || session.database.isClosed.Load() {
		return nil, ErrClosed
	}
	if session.ctx != nil {
		return cursor, session.ctx.Err()
	}
	return cursor, nil
}

// with runs a call with the cursor.
func (handle handle) with(call func(cursor *C.windrow_cursor) error) error {
	handle.session.Lock()
	defer handle.session.Unlock()
	cursor, err := handle.cursor()
	if err != nil {
		return err
	}
	return call(cursor)
}

// fetch moves the cursor and copies entries into the buffer: see calls.h.
func (handle handle) fetch(move, step C.uint32_t, key []byte, parts C.uint32_t, limit int,
	buffer []byte) (C.windrow_go_chunk, error) {
	handle.session.Lock()
	defer handle.session.Unlock()
	cursor, err := handle.cursor()
	if err != nil {
		return C.windrow_go_chunk{}, err
	}
	var chunk C.windrow_go_chunk
	if handle.session.database.calls {
		key, into := bytes.Clone(key), make([]byte, len(buffer))
		chunk = C.windrow_go_fetch_calling(cursor, move, step, data(key), C.size_t(len(key)), parts,
			C.size_t(limit), data(into), C.size_t(len(into)))
		copy(buffer, into[:chunk.used])
	} else {
		chunk = C.windrow_go_fetch(cursor, move, step, data(key), C.size_t(len(key)), parts, C.size_t(limit),
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
	return (&session{database: view.database}).add(cursor), nil
}
