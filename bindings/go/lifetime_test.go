package windrow_test

import (
	"context"
	"errors"
	"iter"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	windrow "github.com/windrow-db/windrow/bindings/go"
)

// After the close of the database, or of the object, each call is an error.
func TestUseAfterCloseIsAnError(t *testing.T) {
	db, main := opened(t, nil)
	put(t, main, "a", "1")
	snapshot, err := db.Snapshot()
	check(t, err)
	transaction, err := db.Begin(windrow.Serializable)
	check(t, err)
	inTransaction, err := transaction.Cursor(main, windrow.All)
	check(t, err)
	cursor, err := main.Cursor(windrow.All)
	check(t, err)
	var batch windrow.Batch
	batch.Put(main, []byte("b"), nil)
	consumer, changes := consuming(t, db, "one")
	check(t, db.Close())

	key, ctx := []byte("a"), context.Background()
	calls := map[string]func() error{
		"keyspace":    func() error { _, err := db.Keyspace("main"); return err },
		"keyspaces":   func() error { _, err := db.Keyspaces(); return err },
		"drop":        func() error { return db.DropKeyspace("main") },
		"swap":        func() error { return db.SwapKeyspaces("main", "main") },
		"stats":       func() error { _, err := db.Stats(); return err },
		"flush":       func() error { return db.Flush(ctx) },
		"snapshot":    func() error { _, err := db.Snapshot(); return err },
		"begin":       func() error { _, err := db.Begin(windrow.Serializable); return err },
		"locking":     func() error { _, err := db.BeginLocking(ctx); return err },
		"transact":    func() error { return db.Transact(ctx, func(*windrow.Transaction) error { return nil }) },
		"write":       func() error { return db.Write(&batch) },
		"get":         func() error { _, err := main.Get(key); return err },
		"has":         func() error { _, err := main.Has(key); return err },
		"get at":      func() error { _, err := main.At(snapshot).Get(key); return err },
		"put":         func() error { return main.Put(key, key) },
		"delete":      func() error { return main.Delete(key) },
		"range":       func() error { return main.DeleteRange(windrow.All) },
		"swap value":  func() error { _, err := main.CompareAndSwap(key, nil, key); return err },
		"put ttl":     func() error { return main.PutWithTTL(key, key, time.Hour) },
		"if absent":   func() error { _, err := main.PutIfAbsent(key, key); return err },
		"take":        func() error { _, err := main.Take(key); return err },
		"many":        func() error { _, err := main.MultiGet(key, key); return err },
		"pinned":      func() error { return main.GetPinned(key, func([]byte) error { return nil }) },
		"expires":     func() error { _, err := main.ExpiresAt(key); return err },
		"load":        func() error { _, err := main.BulkLoad(main.Entries(windrow.All)); return err },
		"sort":        func() error { _, err := main.BulkLoadUnsorted(numbers(0, 10), 1<<20); return err },
		"ingest":      func() error { _, err := db.Ingest(); return err },
		"prepared":    func() error { _, err := db.Prepared(); return err },
		"commit one":  func() error { return db.CommitPrepared("one") },
		"discard one": func() error { return db.RollbackPrepared("one") },
		"merged":      func() error { _, err := db.MergedCursor(windrow.All, main); return err },
		"from bytes":  func() error { _, err := db.BatchFromBytes(nil); return err },
		"changes":     func() error { _, err := db.Changes(1); return err },
		"consumer":    func() error { _, err := db.Consumer("one"); return err },
		"consumers":   func() error { _, err := db.Consumers(); return err },
		"forget":      func() error { return db.RemoveConsumer("one") },
		"next change": func() error { _, err := changes.Next(ctx); return err },
		"its changes": func() error { _, err := consumer.Changes(); return err },
		"its place":   func() error { _, err := consumer.Acknowledged(); return err },
		"acknowledge": func() error { return consumer.Acknowledge(1) },
		"compact":     func() error { return main.Compact(ctx, windrow.All) },
		"rename":      func() error { return main.Rename("other") },
		"open cursor": func() error { _, err := main.Cursor(windrow.All); return err },
		"entries": func() (failed error) {
			for _, failed = range main.Entries(windrow.All) {
			}
			return failed
		},
		"cursor":           func() error { cursor.First(); return cursor.Err() },
		"transaction get":  func() error { _, err := transaction.Get(main, key); return err },
		"its cursor":       func() error { inTransaction.Seek(key); return inTransaction.Err() },
		"cursor expires":   func() error { _, err := cursor.ExpiresAt(); return err },
		"its expiry":       func() error { _, err := transaction.ExpiresAt(main, key); return err },
		"transaction":      func() error { return transaction.Commit() },
		"after the commit": func() error { return transaction.Put(main, key, key) },
	}
	for name, call := range calls {
		if name != "transaction" && name != "after the commit" {
			if err := call(); !errors.Is(err, windrow.ErrClosed) {
				t.Errorf("%s: the error is %v", name, err)
			}
		}
	}
	is(t, calls["transaction"](), windrow.ErrClosed)
	for name, call := range calls {
		if err := call(); !errors.Is(err, windrow.ErrClosed) {
			t.Errorf("%s, once more: the error is %v", name, err)
		}
	}
	check(t, cursor.Close())
	check(t, inTransaction.Close())
	check(t, snapshot.Close())
	check(t, changes.Close())
	check(t, consumer.Close())
	check(t, main.Close())
}

// Goroutines use everything while another one closes it, in random order: they get answers or ErrClosed.
func TestAnythingIsClosedUnderItsUsers(t *testing.T) {
	for round := range 6 {
		db, err := windrow.Open(t.TempDir(), &windrow.Options{LockTimeout: time.Millisecond})
		check(t, err)
		main := keyspace(t, db, "main")
		var batch windrow.Batch
		for i := range 2000 {
			batch.Put(main, []byte(strconv.Itoa(i)), []byte(strings.Repeat("v", i)))
		}
		check(t, db.Write(&batch))
		snapshot, err := db.Snapshot()
		check(t, err)
		transaction, err := db.BeginLocking(context.Background())
		check(t, err)
		shared, err := main.Cursor(windrow.All)
		check(t, err)
		inTransaction, err := transaction.Cursor(main, windrow.All)
		check(t, err)

		consumer, changes := consuming(t, db, "one")

		key := []byte("1000")
		var cursors sync.Mutex
		uses := []func() error{
			func() error { _, err := main.Get(key); return err },
			func() error { return main.Put(key, key) },
			func() error { _, err := main.At(snapshot).Get(key); return err },
			func() error {
				for _, err := range main.At(snapshot).Backward(windrow.All) {
					if err != nil {
						return err
					}
				}
				return nil
			},
			func() error {
				for _, err := range transaction.Entries(main, windrow.Prefix([]byte("10"))) {
					if err != nil {
						return err
					}
				}
				return nil
			},
			func() error { return transaction.Put(main, key, key) },
			func() error {
				cursors.Lock()
				defer cursors.Unlock()
				shared.Next()
				if shared.Err() == nil {
					_, err := shared.Value()
					return err
				}
				return shared.Err()
			},
			func() error {
				cursors.Lock()
				defer cursors.Unlock()
				inTransaction.First()
				return inTransaction.Err()
			},
			func() error { return db.Flush(context.Background()) },
			func() error { _, err := changes.Next(context.Background()); return err },
			func() error {
				for _, err := range changes.Present() {
					return err
				}
				return nil
			},
			func() error {
				place, err := consumer.Acknowledged()
				return errors.Join(err, consumer.Acknowledge(place))
			},
			func() error {
				return db.Transact(context.Background(), func(it *windrow.Transaction) error {
					return it.Put(main, []byte("other"), key)
				})
			},
			func() error { one, err := db.Snapshot(); return errors.Join(err, closed(one)) },
			func() error { _, err := main.MultiGet(key, key); return err },
			func() error { _, err := main.BulkLoad(numbers(0, 3000)); return err },
			func() error {
				for _, err := range db.Merged(windrow.All, main, main) {
					if err != nil {
						return err
					}
				}
				return nil
			},
		}
		var group sync.WaitGroup
		for _, use := range uses {
			group.Add(1)
			go func() {
				defer group.Done()
				for {
					err := use()
					switch {
					case errors.Is(err, windrow.ErrClosed):
						return
					case err != nil && !errors.Is(err, windrow.ErrTimedOut) && !errors.Is(err, windrow.ErrConflict):
						t.Error(err)
						return
					}
				}
			}()
		}
		closes := []func(){
			func() { check(t, main.Close()) },
			func() { check(t, snapshot.Close()) },
			func() { transaction.Rollback() },
			func() { check(t, shared.Close()) },
			func() { check(t, inTransaction.Close()) },
			func() { check(t, changes.Close()) },
			func() { check(t, consumer.Close()) },
			func() { check(t, db.Close()) },
		}
		for i := range closes {
			time.Sleep(time.Duration(round%4) * time.Millisecond)
			closes[(i*5+round)%len(closes)]()
		}
		group.Wait()
	}
}

func closed(snapshot *windrow.Snapshot) error {
	if snapshot == nil {
		return nil
	}
	return snapshot.Close()
}

// A database that nobody closes is closed by the garbage collector, together with all that was made from it.
func TestTheGarbageCollectorReleasesWhatIsForgotten(t *testing.T) {
	path := t.TempDir()
	func() {
		db, err := windrow.Open(path, nil)
		check(t, err)
		main := keyspace(t, db, "main")
		put(t, main, "a", "1")
		snapshot, err := db.Snapshot()
		check(t, err)
		equal(t, get(t, main.At(snapshot), "a"), "1")
		transaction, err := db.Begin(windrow.Serializable)
		check(t, err)
		cursor, err := transaction.Cursor(main, windrow.All)
		check(t, err)
		equal(t, cursor.First(), true)
		_, err = main.Cursor(windrow.All)
		check(t, err)
		_, err = windrow.Open(path, nil)
		is(t, err, windrow.ErrLocked)
	}()
	for range 1000 {
		runtime.GC()
		db, err := windrow.Open(path, nil)
		if err == nil {
			equal(t, get(t, keyspace(t, db, "main"), "a"), "1")
			check(t, db.Close())
			return
		}
		is(t, err, windrow.ErrLocked)
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatal("the database is still open")
}

// What a view, a batch or a cursor needs stays, also if the objects that it came from are gone.
func TestNothingIsReleasedThatIsInUse(t *testing.T) {
	db, _ := opened(t, nil)
	put(t, keyspace(t, db, "main"), "a", "1")
	view := func() *windrow.View {
		snapshot, err := db.Snapshot()
		check(t, err)
		return keyspace(t, db, "main").At(snapshot)
	}()
	cursor := func() *windrow.Cursor {
		transaction, err := db.Begin(windrow.Serializable)
		check(t, err)
		cursor, err := transaction.Cursor(keyspace(t, db, "main"), windrow.All)
		check(t, err)
		return cursor
	}()
	var batch windrow.Batch
	batch.Put(keyspace(t, db, "main"), []byte("a"), []byte("2"))
	for range 5 {
		runtime.GC()
		time.Sleep(time.Millisecond)
	}
	equal(t, cursor.First(), true)
	check(t, db.Write(&batch))
	equal(t, get(t, view, "a"), "1")
}

// An iteration keeps its transaction, also if nobody else does.
func TestAnIterationKeepsItsTransaction(t *testing.T) {
	db, main := opened(t, nil)
	put(t, main, "a", "1", "b", "2", "c", "3")
	transaction := func() *windrow.Transaction {
		transaction, err := db.Begin(windrow.Serializable)
		check(t, err)
		return transaction
	}
	for _, entries := range []func() iter.Seq2[windrow.Entry, error]{
		func() iter.Seq2[windrow.Entry, error] { return transaction().Entries(main, windrow.All) },
		func() iter.Seq2[windrow.Entry, error] { return transaction().Backward(main, windrow.All) },
	} {
		steps := 0
		for _, err := range entries() {
			check(t, err)
			steps++
			for range 3 {
				runtime.GC()
				time.Sleep(time.Millisecond)
			}
		}
		equal(t, steps, 3)
	}
}
