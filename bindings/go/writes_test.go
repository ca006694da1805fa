package windrow_test

import (
	"context"
	"errors"
	"math"
	"strconv"
	"sync"
	"testing"
	"time"

	windrow "github.com/windrow-db/windrow/bindings/go"
)

func TestWritesOfOneKey(t *testing.T) {
	_, main := opened(t, nil)
	key := []byte("a")
	check(t, main.Put(key, []byte("1"), windrow.Sync))
	check(t, main.Put(key, []byte("2"), windrow.Buffered))
	swapped, err := main.CompareAndSwap(key, []byte("1"), []byte("3"))
	check(t, err)
	equal(t, swapped, false)
	swapped, err = main.CompareAndSwap(key, []byte("2"), []byte("3"))
	check(t, err)
	equal(t, swapped, true)
	swapped, err = main.CompareAndSwap([]byte("b"), nil, []byte{})
	check(t, err)
	equal(t, swapped, true)
	equal(t, text(t, main.Entries(windrow.All)), "a=3 b= ")
	check(t, main.Delete(key, windrow.Sync))
	check(t, main.Delete(key))
	put(t, main, "c", "", "d", "")
	check(t, main.DeleteRange(windrow.Range{Start: []byte("b"), End: []byte("d")}))
	equal(t, text(t, main.Entries(windrow.All)), "d= ")
	is(t, main.Put(key, nil, windrow.Durability(9)), windrow.ErrInvalidArgument)
	is(t, main.Merge(key, []byte("x")), windrow.ErrInvalidArgument)
}

func TestBatchesAreOneWrite(t *testing.T) {
	db, main := opened(t, merging("lists", windrow.MergeOperator{Name: "windrow.append.2c"}))
	lists := keyspace(t, db, "lists")
	var batch windrow.Batch
	check(t, db.Write(&batch))
	batch.Put(main, []byte("lost"), nil)
	batch.Clear()
	equal(t, batch.Len(), 0)
	put(t, main, "a", "0", "z", "0")
	key := []byte("b")
	batch.DeleteRange(main, windrow.Range{Start: []byte("z")})
	batch.Put(main, key, []byte("1"))
	key[0] = 'x'
	batch.Delete(main, []byte("a"))
	batch.Merge(lists, []byte("list"), []byte("1"))
	batch.Merge(lists, []byte("list"), []byte("2"))
	batch.Put(keyspace(t, db, "main"), []byte("empty"), nil)
	equal(t, batch.Len(), 6)
	equal(t, text(t, main.Entries(windrow.All)), "a=0 z=0 ")
	check(t, db.Write(&batch, windrow.Sync))
	equal(t, text(t, main.Entries(windrow.All)), "b=1 empty= ")
	check(t, db.Write(&batch))
	equal(t, get(t, lists, "list"), "1,2,1,2")
	batch.Put(main, nil, nil)
	is(t, db.Write(&batch), windrow.ErrInvalidArgument)
	equal(t, get(t, lists, "list"), "1,2,1,2")

	other, _ := opened(t, nil)
	batch.Clear()
	batch.Put(main, []byte("a"), nil)
	is(t, other.Write(&batch), windrow.ErrInvalidArgument)
}

func TestTransactions(t *testing.T) {
	db, main := opened(t, merging("main", windrow.MergeOperator{Name: "windrow.append.2c"}))
	put(t, main, "a", "1", "b", "2")
	for _, isolation := range []windrow.Isolation{windrow.Serializable, windrow.SnapshotIsolation} {
		transaction, err := db.Begin(isolation)
		check(t, err)
		value, err := transaction.Get(main, []byte("a"))
		check(t, err)
		equal(t, string(value), "1")
		check(t, transaction.Put(main, []byte("c"), []byte("3")))
		savepoint, err := transaction.Savepoint()
		check(t, err)
		check(t, transaction.Delete(main, []byte("a")))
		check(t, transaction.Merge(main, []byte("b"), []byte("4")))
		equal(t, text(t, transaction.Entries(main, windrow.All)), "b=2,4 c=3 ")
		check(t, transaction.RollbackTo(savepoint))
		check(t, transaction.DeleteRange(main, windrow.Prefix([]byte("b"))))
		equal(t, text(t, transaction.Backward(main, windrow.All)), "c=3 a=1 ")
		_, err = transaction.Get(main, []byte("b"))
		is(t, err, windrow.ErrKeyNotFound)
		is(t, transaction.RollbackTo(windrow.Savepoint{}), windrow.ErrInvalidArgument)
		transaction.Rollback()
		transaction.Rollback()
		is(t, transaction.Commit(), windrow.ErrClosed)
		is(t, transaction.Put(main, []byte("c"), nil), windrow.ErrClosed)
		_, err = transaction.Savepoint()
		is(t, err, windrow.ErrClosed)
		equal(t, text(t, main.Entries(windrow.All)), "a=1 b=2 ")
	}
	_, err := db.Begin(windrow.Isolation(9))
	is(t, err, windrow.ErrInvalidArgument)
}

func TestAConflictNamesItsKey(t *testing.T) {
	db, main := opened(t, nil)
	put(t, main, "a", "1", "b", "1")
	for _, one := range []struct {
		read     func(*windrow.Transaction)
		conflict bool
	}{
		{func(it *windrow.Transaction) { _, _ = it.Get(main, []byte("a")) }, true},
		{func(it *windrow.Transaction) { _, _ = it.GetForUpdate(main, []byte("a")) }, true},
		{func(it *windrow.Transaction) { _, _ = it.Get(main, []byte("b")) }, false},
		{func(it *windrow.Transaction) { text(t, it.Entries(main, windrow.All)) }, true},
		// What an iteration has not reached counts for nothing.
		{func(it *windrow.Transaction) {
			for range it.Backward(main, windrow.All) {
				break
			}
		}, false},
	} {
		transaction, err := db.Begin(windrow.Serializable)
		check(t, err)
		one.read(transaction)
		check(t, transaction.Put(main, []byte("c"), []byte("2")))
		put(t, main, "a", "2")
		err = transaction.Commit(windrow.Sync)
		if !one.conflict {
			check(t, err)
			check(t, main.Delete([]byte("c")))
			continue
		}
		is(t, err, windrow.ErrConflict)
		var failed *windrow.Error
		if !errors.As(err, &failed) || failed.Keyspace != "main" || string(failed.Key) != "a" {
			t.Fatalf("%#v", failed)
		}
		equal(t, get(t, main, "c"), "missing")
	}
}

func TestTheEndOfATransactionEndsItsCursors(t *testing.T) {
	db, main := opened(t, nil)
	put(t, main, "a", "1", "b", "2")
	transaction, err := db.Begin(windrow.Serializable)
	check(t, err)
	cursor, err := transaction.Cursor(main, windrow.All)
	check(t, err)
	equal(t, cursor.First(), true)
	steps := 0
	for _, err := range transaction.Entries(main, windrow.All) {
		if steps++; steps == 1 {
			check(t, err)
			check(t, transaction.Commit())
		} else {
			is(t, err, windrow.ErrClosed)
		}
	}
	equal(t, steps, 2)
	equal(t, cursor.Next(), false)
	is(t, cursor.Err(), windrow.ErrClosed)
	check(t, cursor.Close())
}

func TestTransactTriesAgain(t *testing.T) {
	db, main := opened(t, nil)
	counter := []byte("counter")
	add := func(transaction *windrow.Transaction) error {
		value, err := transaction.GetForUpdate(main, counter)
		if err != nil && !errors.Is(err, windrow.ErrKeyNotFound) {
			return err
		}
		number, _ := strconv.Atoi(string(value))
		return transaction.Put(main, counter, strconv.AppendInt(nil, int64(number+1), 10))
	}
	var group sync.WaitGroup
	for worker := range 4 {
		group.Add(1)
		go func() {
			defer group.Done()
			for range 50 {
				transact := db.Transact
				if worker%2 == 0 {
					transact = db.TransactLocking
				}
				if err := transact(context.Background(), add); err != nil {
					t.Error(err)
				}
			}
		}()
	}
	group.Wait()
	equal(t, get(t, main, "counter"), "200")
	failed := errors.New("failed")
	is(t, db.Transact(context.Background(), func(transaction *windrow.Transaction) error {
		check(t, transaction.Put(main, counter, nil))
		return failed
	}), failed)
	equal(t, get(t, main, "counter"), "200")

	// The end of the context ends the tries, and the pause before the next one.
	ctx, cancel := context.WithCancel(context.Background())
	tries := 0
	is(t, db.Transact(ctx, func(*windrow.Transaction) error {
		if tries++; tries == 20 {
			cancel()
		}
		return windrow.ErrConflict
	}), context.Canceled)
	equal(t, tries, 20)
}

func TestLocksWaitUntilTheDeadline(t *testing.T) {
	db, main := opened(t, &windrow.Options{LockTimeout: time.Hour})
	first, err := db.BeginLocking(context.Background())
	check(t, err)
	defer first.Rollback()
	check(t, first.Put(main, []byte("a"), []byte("1")))
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	second, err := db.BeginLocking(ctx)
	check(t, err)
	defer second.Rollback()
	err = second.Put(main, []byte("a"), []byte("2"))
	is(t, err, windrow.ErrTimedOut)
	<-ctx.Done()
	is(t, second.Put(main, []byte("b"), []byte("2")), context.DeadlineExceeded)
	_, err = second.Get(main, []byte("b"))
	is(t, err, context.DeadlineExceeded)
	is(t, second.Commit(), context.DeadlineExceeded)
	check(t, first.Commit())
	equal(t, text(t, main.Entries(windrow.All)), "a=1 ")
}

func TestAnEndedContextEndsAScanOfATransaction(t *testing.T) {
	db, main := opened(t, nil)
	put(t, main, "a", "1", "b", "2", "c", "3")
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	transaction, err := db.BeginLocking(ctx)
	check(t, err)
	defer transaction.Rollback()
	cursor, err := transaction.Cursor(main, windrow.All)
	check(t, err)
	equal(t, cursor.First(), true)
	steps := 0
	for _, err := range transaction.Entries(main, windrow.All) {
		if steps++; steps == 1 {
			check(t, err)
			cancel()
		} else {
			is(t, err, context.Canceled)
		}
	}
	equal(t, steps, 2)
	equal(t, cursor.Next(), false)
	is(t, cursor.Err(), context.Canceled)
	_, err = cursor.Value()
	is(t, err, context.Canceled)
	check(t, cursor.Close())
}

func TestADeadlockIsFound(t *testing.T) {
	db, main := opened(t, &windrow.Options{LockTimeout: math.MaxInt64})
	var begun [2]*windrow.Transaction
	for i := range begun {
		transaction, err := db.BeginLocking(context.Background())
		check(t, err)
		check(t, transaction.Put(main, []byte{'a' + byte(i)}, nil))
		begun[i] = transaction
	}
	failed := make(chan error, 2)
	for i, transaction := range begun {
		go func() {
			_, err := transaction.GetForShare(main, []byte{'b' - byte(i)})
			transaction.Rollback()
			failed <- err
		}()
	}
	deadlocks := 0
	for range begun {
		if err := <-failed; errors.Is(err, windrow.ErrDeadlock) {
			deadlocks++
		} else {
			is(t, err, windrow.ErrKeyNotFound)
		}
	}
	equal(t, deadlocks, 1)
}
