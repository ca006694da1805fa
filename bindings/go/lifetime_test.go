package windrow_test

import (
	"context"
	"errors"
	"os"
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
			func() error {
				return db.Transact(context.Background(), func(it *windrow.Transaction) error {
					return it.Put(main, []byte("other"), key)
				})
			},
			func() error { one, err := db.Snapshot(); return errors.Join(err, closed(one)) },
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

func residentBytes(t *testing.T) int {
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		t.Skip("there is no /proc")
	}
	pages, err := strconv.Atoi(strings.Fields(string(text))[1])
	check(t, err)
	return pages * os.Getpagesize()
}

// Objects that are made and closed many times, and errors, leave nothing behind, neither in Go's memory nor in the process.
func TestNothingGrows(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector has memory of its own")
	}
	options := &windrow.Options{MemoryBudget: 16 << 20, Keyspace: &windrow.KeyspaceOptions{MemtableBytes: 1 << 20}}
	db, main := opened(t, options)
	path := t.TempDir()
	put(t, main, "a", "1", "b", "2", "large", strings.Repeat("x", 10000))
	check(t, db.Flush(context.Background()))
	key, forgotten := []byte("b"), 0
	for _, one := range []struct {
		name  string
		count int
		use   func()
	}{
		{"gets", 200_000, func() { _, _ = main.Get([]byte("large")); _, _ = main.Get(key) }},
		{"errors", 100_000, func() { _ = main.Put(nil, nil) }},
		{"iterations", 50_000, func() {
			for range main.Entries(windrow.All) {
			}
			for range main.Backward(windrow.All) {
				break
			}
		}},
		{"cursors", 50_000, func() {
			cursor, _ := main.Cursor(windrow.All)
			cursor.Last()
			_, _ = cursor.Value()
			_ = cursor.Close()
		}},
		{"snapshots", 100_000, func() {
			snapshot, _ := db.Snapshot()
			_, _ = main.At(snapshot).Get(key)
			_ = snapshot.Close()
		}},
		{"keyspaces", 50_000, func() {
			keyspace, _ := db.Keyspace("main")
			_ = keyspace.Close()
		}},
		{"batches", 30_000, func() {
			var batch windrow.Batch
			batch.Put(main, key, key)
			_ = db.Write(&batch)
		}},
		{"transactions", 20_000, func() {
			transaction, _ := db.Begin(windrow.Serializable)
			_ = transaction.Put(main, key, key)
			for range transaction.Entries(main, windrow.All) {
				break
			}
			_, _ = transaction.Cursor(main, windrow.All)
			_ = transaction.Commit()
		}},
		{"conflicts", 20_000, func() {
			transaction, _ := db.Begin(windrow.Serializable)
			_, _ = transaction.Get(main, key)
			_ = transaction.Put(main, key, key)
			_ = main.Put(key, key)
			_ = transaction.Commit()
		}},
		{"forgotten", 10_000, func() {
			if forgotten++; forgotten%100 == 0 {
				runtime.GC()
			}
			_, _ = main.Cursor(windrow.All)
			snapshot, _ := db.Snapshot()
			_ = main.At(snapshot)
			_, _ = db.Begin(windrow.Serializable)
			_, _ = db.Keyspace("main")
		}},
		{"opens", 40, func() {
			other, err := windrow.Open(path, options)
			check(t, err)
			_, err = other.Keyspace("main")
			check(t, err)
			check(t, other.Close())
		}},
	} {
		settle := func() (int, uint64) {
			for range 3 {
				runtime.GC()
				time.Sleep(5 * time.Millisecond)
			}
			var stats runtime.MemStats
			runtime.ReadMemStats(&stats)
			return residentBytes(t), stats.HeapAlloc
		}
		for range one.count / 4 {
			one.use()
		}
		resident, heap := settle()
		for range one.count {
			one.use()
		}
		residentNow, heapNow := settle()
		grown, heapGrown := residentNow-resident, int64(heapNow)-int64(heap)
		t.Logf("%s: %d times, %d bytes of Go, %d resident bytes", one.name, one.count, heapGrown, grown)
		// The memory budget, the allocator and Go's heap take some; an object that stays takes more.
		if heapGrown > 256<<10 || grown > 12<<20 {
			t.Errorf("%s: %d bytes of Go, %d resident bytes", one.name, heapGrown, grown)
		}
	}
}
