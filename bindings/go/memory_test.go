package windrow_test

import (
	"context"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	windrow "github.com/windrow-db/windrow/bindings/go"
)

func residentBytes(t *testing.T) int {
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		t.Skip("there is no /proc")
	}
	pages, err := strconv.Atoi(strings.Fields(string(text))[1])
	check(t, err)
	return pages * os.Getpagesize()
}

// What the memory budget of a database, the allocator and Go's heap take and give back as they like, in bytes.
const (
	slackResident = 8 << 20
	slackHeap     = 256 << 10
)

// doesNotGrow runs use often. It leaves nothing behind, neither in Go's memory nor in the process.
//
// What the first half leaves may be kept for the next ones; the second half may leave nothing but the slack. size is less than what
// one would leave if it left anything, so that a leak is found whatever the slack if the count is large.
func doesNotGrow(t *testing.T, name string, count, size int, use func()) {
	t.Helper()
	if raceEnabled {
		t.Skip("the race detector has memory of its own")
	}
	settle := func() (int, int) {
		for range 3 {
			runtime.GC()
			time.Sleep(5 * time.Millisecond)
		}
		var stats runtime.MemStats
		runtime.ReadMemStats(&stats)
		return residentBytes(t), int(stats.HeapAlloc)
	}
	began := time.Now()
	// What the first ones allocate may stay.
	for range min(count/4, 10_000) {
		use()
	}
	var grown, heapGrown [2]int
	resident, heap := settle()
	for half := range 2 {
		for range count / 2 {
			use()
		}
		residentNow, heapNow := settle()
		grown[half], heapGrown[half] = residentNow-resident, heapNow-heap
		resident, heap = residentNow, heapNow
	}
	t.Logf("%s: %d times in %.0f s; the first half left %d bytes of Go and %d resident bytes; the second %d and %d",
		name, count, time.Since(began).Seconds(), heapGrown[0], grown[0], heapGrown[1], grown[1])
	if heapGrown[1] > slackHeap+size*count/2 || grown[1] > slackResident+size*count/2 {
		t.Errorf("%s: %v bytes of Go, %v resident bytes", name, heapGrown, grown)
	}
}

// small are options of a database that needs little memory.
func small() *windrow.Options {
	return &windrow.Options{MemoryBudget: 16 << 20, Keyspace: &windrow.KeyspaceOptions{MemtableBytes: 1 << 20}}
}

// times is how often something is made: as often as the environment variable WINDROW_TIMES says, or without it count times.
func times(t *testing.T, count int) int {
	if text, ok := os.LookupEnv("WINDROW_TIMES"); ok {
		var err error
		count, err = strconv.Atoi(text)
		check(t, err)
	}
	return count
}

// Errors, cursors and opens: memory.sh makes a million of each.
func TestErrorsLeaveNothing(t *testing.T) {
	_, main := opened(t, small())
	doesNotGrow(t, "errors", times(t, 100_000), 8, func() { is(t, main.Put(nil, nil), windrow.ErrInvalidArgument) })
}

func TestCursorsLeaveNothing(t *testing.T) {
	db, main := opened(t, small())
	put(t, main, "a", "1", "large", strings.Repeat("x", 10000))
	check(t, db.Flush(context.Background()))
	doesNotGrow(t, "cursors", times(t, 100_000), 16, func() {
		cursor, err := main.Cursor(windrow.All)
		check(t, err)
		equal(t, cursor.Last(), true)
		_, err = cursor.Value()
		check(t, err)
		check(t, cursor.Close())
	})
}

func TestOpensLeaveNothing(t *testing.T) {
	// In memory if the system has such a place: an open there waits for no disk.
	path, err := os.MkdirTemp("/dev/shm", "windrow")
	if err != nil {
		path = t.TempDir()
	}
	defer os.RemoveAll(path)
	doesNotGrow(t, "opens", times(t, 2000), 256, func() {
		other, err := windrow.Open(path, small())
		check(t, err)
		_, err = other.Keyspace("main")
		check(t, err)
		check(t, other.Close())
	})
}

// All other objects that are made and closed many times.
func TestNothingGrows(t *testing.T) {
	options := small()
	options.MergeOperators = map[string]windrow.MergeOperator{"lists": listOperator}
	db, main := opened(t, options)
	lists := keyspace(t, db, "lists")
	put(t, main, "a", "1", "b", "2", "large", strings.Repeat("x", 10000))
	check(t, lists.Merge([]byte("a"), []byte("1")))
	check(t, db.Flush(context.Background()))
	check(t, lists.Merge([]byte("a"), []byte("2")))
	key, forgotten := []byte("b"), 0
	for _, one := range []struct {
		name  string
		count int
		use   func()
	}{
		{"gets", 200_000, func() { _, _ = main.Get([]byte("large")); _, _ = main.Get(key) }},
		{"iterations", 50_000, func() {
			for range main.Entries(windrow.All) {
			}
			for range main.Backward(windrow.All) {
				break
			}
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
		{"many keys", 50_000, func() { _, _ = main.MultiGet(key, []byte("large"), []byte("missing")) }},
		{"pinned values", 100_000, func() {
			_ = main.GetPinned([]byte("large"), func([]byte) error { return nil })
		}},
		{"merges in Go", 50_000, func() { _, _ = lists.Get([]byte("a")) }},
		{"batches as bytes", 20_000, func() {
			var batch windrow.Batch
			batch.PutWithTTL(main, key, key, time.Hour)
			bytes, _ := batch.Bytes()
			again, _ := db.BatchFromBytes(bytes)
			_, _ = again.Writes()
		}},
		{"merged iterations", 20_000, func() {
			for range db.Merged(windrow.All, main, lists) {
			}
		}},
		{"changes", 2_000, func() {
			consumer, _ := db.Consumer("one")
			changes, _ := consumer.Changes()
			_ = main.Put(key, key)
			for change := range changes.Present() {
				_, _ = change.Bytes()
				if change.Sequence%100 == 0 {
					_ = consumer.Acknowledge(change.Sequence)
				}
			}
			_ = changes.Close()
			_ = consumer.Close()
		}},
		{"failed loads", 5_000, func() {
			_, _ = main.BulkLoad(func(yield func(windrow.Entry, error) bool) { yield(windrow.Entry{}, nil) })
		}},
		{"options with functions", 20_000, func() {
			options := &windrow.Options{Listener: func(windrow.Event) {}, ErrorIfMissing: true,
				MergeOperators: map[string]windrow.MergeOperator{"a": listOperator}}
			before := runtime.NumGoroutine()
			_, _ = windrow.Open("/nowhere", options)
			// Go keeps a little of each goroutine that ran beside others, so that of the listener ends before the next.
			for runtime.NumGoroutine() > before {
				runtime.Gosched()
			}
		}},
	} {
		t.Run(one.name, func(t *testing.T) { doesNotGrow(t, one.name, one.count, 64, one.use) })
	}
}
