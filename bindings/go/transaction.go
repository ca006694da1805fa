package windrow

/*
#cgo noescape windrow_go_transaction_get
#cgo nocallback windrow_go_transaction_get
#cgo noescape windrow_go_transaction_put
#cgo nocallback windrow_go_transaction_put
#include "calls.h"
*/
import "C"

import (
	"bytes"
	"context"
	"errors"
	"iter"
	"math/rand/v2"
	"runtime"
	"time"
)

// Isolation says on what the commit of a transaction depends.
type Isolation uint32

const (
	// Serializable: on everything that the transaction has read.
	Serializable Isolation = C.WINDROW_ISOLATION_SERIALIZABLE
	// SnapshotIsolation: on the keys that the transaction writes, or has read for an update.
	SnapshotIsolation Isolation = C.WINDROW_ISOLATION_SNAPSHOT
)

// Transaction has reads and writes that commit as one, or not at all. It reads the state at its begin, with its own writes
// over it. End it with Commit or Rollback; a Rollback after the end does nothing, so defer it.
type Transaction struct {
	session *session
	cleanup runtime.Cleanup
}

// Begin begins a transaction without locks. Its commit fails with [ErrConflict], and writes nothing, if another write has
// changed meanwhile what it depends on: begin another one then, or let [DB.Transact] do it.
func (db *DB) Begin(isolation Isolation) (*Transaction, error) {
	return db.begin(context.Background(), func(database *C.windrow_database, made **C.windrow_transaction,
		failed **C.windrow_error) {
		C.windrow_transaction_begin(database, C.uint32_t(isolation), made, failed)
	})
}

// BeginLocking begins a transaction that locks the keys that it writes or reads for an update. It waits for each lock as
// long as the [Options] say, and not for longer than there was until the deadline of ctx at the begin. After the end of
// ctx its calls and those of its cursors, but for Rollback and Close, return the error of ctx. A wait for a lock that has
// begun goes on for its time, and other calls of the transaction wait for it.
func (db *DB) BeginLocking(ctx context.Context) (*Transaction, error) {
	timeout := db.lockTimeout
	if deadline, ok := ctx.Deadline(); ok {
		timeout = min(timeout, time.Until(deadline))
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return db.begin(ctx, func(database *C.windrow_database, made **C.windrow_transaction, failed **C.windrow_error) {
		C.windrow_transaction_begin_locking(database, milliseconds(timeout), made, failed)
	})
}

func (db *DB) begin(ctx context.Context,
	call func(*C.windrow_database, **C.windrow_transaction, **C.windrow_error)) (*Transaction, error) {
	// A variable of its own: C is given no pointer into an object of Go that has pointers.
	var pointer *C.windrow_transaction
	err := db.with(func(database *C.windrow_database, failed **C.windrow_error) {
		call(database, &pointer, failed)
	})
	if err != nil {
		return nil, err
	}
	made := &session{database: db.handle, ctx: ctx, transaction: pointer}
	transaction := &Transaction{session: made}
	transaction.cleanup = runtime.AddCleanup(transaction, (*session).forget, made)
	return transaction, nil
}

// Transact runs work in a serializable transaction without locks and commits it. After a conflict it waits for a short
// random time and does both again, until ctx ends. An error of work ends the transaction without a commit.
func (db *DB) Transact(ctx context.Context, work func(*Transaction) error) error {
	return again(ctx, work, func() (*Transaction, error) { return db.Begin(Serializable) })
}

// TransactLocking runs work in a locking transaction and commits it. After a conflict or a deadlock it waits for a short
// random time and does both again, until ctx ends.
func (db *DB) TransactLocking(ctx context.Context, work func(*Transaction) error) error {
	return again(ctx, work, func() (*Transaction, error) { return db.BeginLocking(ctx) })
}

// The longest pause after a conflict, and by how much each one may be longer than the one before.
const pauseMax, pauseStep = 10 * time.Millisecond, 100 * time.Microsecond

func again(ctx context.Context, work func(*Transaction) error, begin func() (*Transaction, error)) error {
	for tries := 1; ; tries++ {
		if err := ctx.Err(); err != nil {
			return err
		}
		err := once(work, begin)
		if !errors.Is(err, ErrConflict) && !errors.Is(err, ErrDeadlock) {
			return err
		}
		pause(ctx, rand.N(min(pauseMax, time.Duration(tries)*pauseStep)))
	}
}

// pause waits for so long, or until ctx ends.
func pause(ctx context.Context, duration time.Duration) {
	timer := time.NewTimer(duration)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

func once(work func(*Transaction) error, begin func() (*Transaction, error)) error {
	transaction, err := begin()
	if err != nil {
		return err
	}
	defer transaction.Rollback()
	if err := work(transaction); err != nil {
		return err
	}
	return transaction.Commit()
}

// enter takes the transaction and the handle of a keyspace for a call, which ends with leave.
func (transaction *Transaction) enter(keyspace *Keyspace) error {
	if err := transaction.session.ctx.Err(); err != nil {
		return err
	}
	if !keyspace.keyspace.enter() {
		return ErrClosed
	}
	transaction.session.Lock()
	if transaction.session.transaction == nil {
		transaction.leave(keyspace)
		return ErrClosed
	}
	return nil
}

func (transaction *Transaction) leave(keyspace *Keyspace) {
	transaction.session.Unlock()
	keyspace.keyspace.leave()
}

// with runs a call with the handles.
func (transaction *Transaction) with(keyspace *Keyspace,
	call func(*C.windrow_transaction, *C.windrow_keyspace, **C.windrow_error)) error {
	if err := transaction.enter(keyspace); err != nil {
		return err
	}
	defer transaction.leave(keyspace)
	var failed *C.windrow_error
	call(transaction.session.transaction, keyspace.keyspace.pointer, &failed)
	return failure(failed)
}

// Get returns the value of key as the transaction sees it, or [ErrKeyNotFound].
func (transaction *Transaction) Get(keyspace *Keyspace, key []byte) ([]byte, error) {
	return transaction.get(keyspace, key, C.WINDROW_READ_PLAIN)
}

// GetForUpdate is a Get before a write of the key. A locking transaction locks the key, and every commit depends on it.
func (transaction *Transaction) GetForUpdate(keyspace *Keyspace, key []byte) ([]byte, error) {
	return transaction.get(keyspace, key, C.WINDROW_READ_FOR_UPDATE)
}

// GetForShare is a Get that no other transaction may make wrong. A locking transaction locks the key beside others that do
// the same.
func (transaction *Transaction) GetForShare(keyspace *Keyspace, key []byte) ([]byte, error) {
	return transaction.get(keyspace, key, C.WINDROW_READ_FOR_SHARE)
}

func (transaction *Transaction) get(keyspace *Keyspace, key []byte, intent C.uint32_t) ([]byte, error) {
	if err := transaction.enter(keyspace); err != nil {
		return nil, err
	}
	if transaction.session.database.calls {
		key, buffer := bytes.Clone(key), make([]byte, smallValue)
		found := C.windrow_go_transaction_get_calling(transaction.session.transaction, keyspace.keyspace.pointer,
			data(key), C.size_t(len(key)), intent, data(buffer), smallValue)
		transaction.leave(keyspace)
		return valueOf(found, buffer)
	}
	var buffer [smallValue]byte
	found := C.windrow_go_transaction_get(transaction.session.transaction, keyspace.keyspace.pointer, data(key),
		C.size_t(len(key)), intent, data(buffer[:]), smallValue)
	transaction.leave(keyspace)
	return valueOf(found, buffer[:])
}

// Put sets the value of key. Nobody else sees it before the commit.
func (transaction *Transaction) Put(keyspace *Keyspace, key, value []byte) error {
	if transaction.session.database.calls {
		key, value := bytes.Clone(key), bytes.Clone(value)
		return transaction.with(keyspace, func(transaction *C.windrow_transaction, keyspace *C.windrow_keyspace,
			failed **C.windrow_error) {
			C.windrow_transaction_put(transaction, keyspace, lend(key), lend(value), failed)
		})
	}
	if err := transaction.enter(keyspace); err != nil {
		return err
	}
	failed := C.windrow_go_transaction_put(transaction.session.transaction, keyspace.keyspace.pointer, data(key),
		C.size_t(len(key)), data(value), C.size_t(len(value)))
	transaction.leave(keyspace)
	return failure(failed)
}

// PutWithTTL sets the value of key for ttl from now on, as [Keyspace.PutWithTTL] does.
func (transaction *Transaction) PutWithTTL(keyspace *Keyspace, key, value []byte, ttl time.Duration) error {
	lifetime, err := timeToLive(ttl)
	if err != nil {
		return err
	}
	return transaction.with(keyspace, func(transaction *C.windrow_transaction, keyspace *C.windrow_keyspace,
		failed **C.windrow_error) {
		C.windrow_transaction_put_with_ttl(transaction, keyspace, lend(key), lend(value), lifetime, failed)
	})
}

// ExpiresAt is as [View.ExpiresAt], as the transaction sees it.
func (transaction *Transaction) ExpiresAt(keyspace *Keyspace, key []byte) (time.Time, error) {
	var at C.uint64_t
	err := transaction.with(keyspace, func(transaction *C.windrow_transaction, keyspace *C.windrow_keyspace,
		failed **C.windrow_error) {
		C.windrow_transaction_expires_at(transaction, keyspace, lend(key), &at, failed)
	})
	return expiryOf(at, err)
}

// Delete removes key.
func (transaction *Transaction) Delete(keyspace *Keyspace, key []byte) error {
	return transaction.with(keyspace, func(transaction *C.windrow_transaction, keyspace *C.windrow_keyspace,
		failed **C.windrow_error) {
		C.windrow_transaction_delete(transaction, keyspace, lend(key), failed)
	})
}

// DeleteRange removes all keys of a range.
func (transaction *Transaction) DeleteRange(keyspace *Keyspace, keys Range) error {
	return transaction.with(keyspace, func(transaction *C.windrow_transaction, keyspace *C.windrow_keyspace,
		failed **C.windrow_error) {
		C.windrow_transaction_delete_range(transaction, keyspace, keys.lend(), failed)
	})
}

// Merge writes an operand, which the merge operator of the keyspace folds into the value of key.
func (transaction *Transaction) Merge(keyspace *Keyspace, key, operand []byte) error {
	return transaction.with(keyspace, func(transaction *C.windrow_transaction, keyspace *C.windrow_keyspace,
		failed **C.windrow_error) {
		C.windrow_transaction_merge(transaction, keyspace, lend(key), lend(operand), failed)
	})
}

// Entries are the entries of a range in order, as the transaction sees them. A write that it makes meanwhile shows if it is
// ahead. The commit depends on what the iteration has yielded, and on no more.
func (transaction *Transaction) Entries(keyspace *Keyspace, keys Range) iter.Seq2[Entry, error] {
	return transaction.entries(keyspace, keys, forwards)
}

// Backward are the entries of a range from the last to the first.
func (transaction *Transaction) Backward(keyspace *Keyspace, keys Range) iter.Seq2[Entry, error] {
	return transaction.entries(keyspace, keys, backwards)
}

func (transaction *Transaction) entries(keyspace *Keyspace, keys Range, direction direction) iter.Seq2[Entry, error] {
	open := func() (handle, error) { return transaction.cursor(keyspace, keys) }
	return func(yield func(Entry, error) bool) {
		// If it were collected during the iteration, its cursors would end with it.
		defer runtime.KeepAlive(transaction)
		entries(open, direction, withValues, oneByOne)(yield)
	}
}

// Cursor opens a cursor over a range as the transaction sees it. It ends with the transaction.
func (transaction *Transaction) Cursor(keyspace *Keyspace, keys Range) (*Cursor, error) {
	handle, err := transaction.cursor(keyspace, keys)
	if err != nil {
		return nil, err
	}
	return newCursor(handle, transaction), nil
}

func (transaction *Transaction) cursor(keyspace *Keyspace, keys Range) (handle, error) {
	var made handle
	err := transaction.with(keyspace, func(pointer *C.windrow_transaction, keyspace *C.windrow_keyspace,
		failed **C.windrow_error) {
		var cursor *C.windrow_cursor
		C.windrow_transaction_cursor_open(pointer, keyspace, keys.lend(), &cursor, failed)
		if cursor != nil {
			made = transaction.session.add(cursor)
		}
	})
	return made, err
}

// Savepoint is a state of the writes and locks of a transaction.
type Savepoint struct {
	of     *session
	number C.size_t
}

// Savepoint marks the present state of the writes and locks.
func (transaction *Transaction) Savepoint() (Savepoint, error) {
	var number C.size_t
	err := transaction.alone(func(pointer *C.windrow_transaction, failed **C.windrow_error) {
		C.windrow_transaction_savepoint(pointer, &number, failed)
	})
	return Savepoint{transaction.session, number}, err
}

// RollbackTo discards what the transaction has written and locked since the savepoint, which stays.
func (transaction *Transaction) RollbackTo(savepoint Savepoint) error {
	if savepoint.of != transaction.session {
		return invalid("the savepoint is of another transaction")
	}
	return transaction.alone(func(pointer *C.windrow_transaction, failed **C.windrow_error) {
		C.windrow_transaction_roll_back_to(pointer, savepoint.number, failed)
	})
}

// alone runs a call with the transaction.
func (transaction *Transaction) alone(call func(*C.windrow_transaction, **C.windrow_error)) error {
	if err := transaction.session.ctx.Err(); err != nil {
		return err
	}
	transaction.session.Lock()
	defer transaction.session.Unlock()
	if transaction.session.transaction == nil {
		return ErrClosed
	}
	var failed *C.windrow_error
	call(transaction.session.transaction, &failed)
	return failure(failed)
}

// Commit writes all of the transaction as one, and ends it with its cursors, also after an error. Then nothing was written,
// unless the database was poisoned: after [ErrPoisoned], or an error that has poisoned it, the next open shows it.
func (transaction *Transaction) Commit(durability ...Durability) error {
	return transaction.finish(func(pointer *C.windrow_transaction) error {
		var failed *C.windrow_error
		C.windrow_transaction_commit(pointer, last(durability), &failed)
		return failure(failed)
	})
}

// finish ends the transaction with its cursors, and gives C's part of it to call, which frees it. If the context has ended,
// the transaction is rolled back.
func (transaction *Transaction) finish(call func(*C.windrow_transaction) error) error {
	if err := transaction.session.ctx.Err(); err != nil {
		transaction.Rollback()
		return err
	}
	transaction.session.Lock()
	defer transaction.session.Unlock()
	pointer := transaction.session.end()
	if pointer == nil {
		return ErrClosed
	}
	transaction.cleanup.Stop()
	return call(pointer)
}

// Rollback discards the writes of the transaction, and ends it with its cursors. It does nothing after the end.
func (transaction *Transaction) Rollback() {
	transaction.cleanup.Stop()
	transaction.session.rollBack()
}
