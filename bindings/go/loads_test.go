package windrow_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	windrow "github.com/windrow-db/windrow/bindings/go"
)

// numbers are entries whose keys are the numbers from first on.
func numbers(first, count int) iter.Seq2[windrow.Entry, error] {
	return func(yield func(windrow.Entry, error) bool) {
		for i := first; i < first+count; i++ {
			entry := windrow.Entry{Key: fmt.Appendf(nil, "%06d", i), Value: []byte(strings.Repeat("v", i%300))}
			if !yield(entry, nil) {
				return
			}
		}
	}
}

func countOf(t testing.TB, view *windrow.View) int {
	t.Helper()
	count := 0
	for _, err := range view.Keys(windrow.All) {
		check(t, err)
		count++
	}
	return count
}

func TestBulkLoads(t *testing.T) {
	db, main := opened(t, nil)
	copied := keyspace(t, db, "copied")
	for _, count := range []int{0, 1, 10_000} {
		loaded, err := main.BulkLoad(numbers(0, count))
		check(t, err)
		equal(t, loaded, uint64(count))
		equal(t, countOf(t, &main.View), count)
		check(t, main.DeleteRange(windrow.All))
	}
	_, err := main.BulkLoad(numbers(0, 1000))
	check(t, err)
	equal(t, get(t, main, "000299"), strings.Repeat("v", 299))
	// From one keyspace to the other.
	loaded, err := copied.BulkLoad(main.Entries(windrow.All))
	check(t, err)
	equal(t, loaded, 1000)
	equal(t, text(t, copied.Entries(windrow.All)), text(t, main.Entries(windrow.All)))

	reversed := func(yield func(windrow.Entry, error) bool) {
		for i := range 5000 {
			if !yield(windrow.Entry{Key: fmt.Appendf(nil, "%06d", (7919*i)%2500), Value: fmt.Append(nil, i)}, nil) {
				return
			}
		}
	}
	_, err = main.BulkLoad(reversed)
	is(t, err, windrow.ErrInvalidArgument)
	loaded, err = main.BulkLoadUnsorted(reversed, 16<<10)
	check(t, err)
	equal(t, loaded, 2500)
	equal(t, get(t, main, "000000"), "2500")
	_, err = main.BulkLoadUnsorted(reversed, 0)
	is(t, err, windrow.ErrInvalidArgument)
}

func TestALoadThatFailsLoadsNothing(t *testing.T) {
	db, main := opened(t, nil)
	failed := errors.New("failed")
	for _, before := range []int{0, 1, 5000} {
		_, err := main.BulkLoad(func(yield func(windrow.Entry, error) bool) {
			numbers(0, before)(yield)
			yield(windrow.Entry{}, failed)
		})
		is(t, err, failed)
		func() {
			defer func() { equal(t, recover().(error), failed) }()
			_, _ = main.BulkLoad(func(yield func(windrow.Entry, error) bool) {
				numbers(0, before)(yield)
				panic(failed)
			})
		}()
		_, err = main.BulkLoad(func(yield func(windrow.Entry, error) bool) {
			numbers(0, before)(yield)
			for range 3 {
				if !yield(windrow.Entry{Value: make([]byte, 100_000)}, nil) {
					return
				}
			}
			t.Error("the iteration goes on")
		})
		is(t, err, windrow.ErrInvalidArgument)
	}
	equal(t, countOf(t, &main.View), 0)
	check(t, db.WaitIdle(context.Background()))
	_, err := main.BulkLoad(func(yield func(windrow.Entry, error) bool) {
		numbers(0, 2000)(yield)
		check(t, db.Close())
		numbers(2000, 2000)(yield)
	})
	is(t, err, windrow.ErrClosed)
	_, err = main.BulkLoad(numbers(0, 1))
	is(t, err, windrow.ErrClosed)
}

func TestTableFiles(t *testing.T) {
	db, main := opened(t, nil)
	other := keyspace(t, db, "other")
	path := filepath.Join(t.TempDir(), "table")
	put(t, main, "b", "2", "c", "3")
	writer, err := windrow.CreateTable(path, &windrow.Options{Keyspace: &windrow.KeyspaceOptions{Compression: windrow.LZ4}})
	check(t, err)
	check(t, writer.Put([]byte("a"), []byte("1")))
	check(t, writer.Delete([]byte("b")))
	is(t, writer.Put([]byte("a"), nil), windrow.ErrInvalidArgument)
	count, err := writer.Finish()
	check(t, err)
	equal(t, count, 2)
	for _, call := range []func() error{
		func() error { return writer.Put([]byte("c"), nil) },
		func() error { return writer.Delete([]byte("c")) },
		func() error { _, err := writer.Finish(); return err },
	} {
		is(t, call(), windrow.ErrClosed)
	}
	check(t, writer.Close())
	_, err = windrow.CreateTable(path, nil)
	is(t, err, windrow.ErrIO)

	second := path + ".second"
	writer, err = windrow.CreateTable(second, nil)
	check(t, err)
	check(t, writer.Put([]byte("z"), []byte("9")))
	_, err = writer.Finish()
	check(t, err)
	_, err = db.Ingest(windrow.TableFile{Keyspace: main, Path: path}, windrow.TableFile{Keyspace: other, Path: "nowhere"})
	is(t, err, windrow.ErrIO)
	_, err = db.Ingest(windrow.TableFile{Keyspace: main, Path: "a\x00b"})
	is(t, err, windrow.ErrInvalidArgument)
	equal(t, text(t, main.Entries(windrow.All)), "b=2 c=3 ")
	count, err = db.Ingest(windrow.TableFile{Keyspace: main, Path: path}, windrow.TableFile{Keyspace: other, Path: second})
	check(t, err)
	equal(t, count, 3)
	equal(t, text(t, main.Entries(windrow.All)), "a=1 c=3 ")
	equal(t, text(t, other.Entries(windrow.All)), "z=9 ")
}

// A file that nobody finishes is removed: by Close, and by the garbage collector.
func TestAnUnfinishedTableFileIsRemoved(t *testing.T) {
	path := filepath.Join(t.TempDir(), "table")
	isThere := func() bool { _, err := os.Stat(path); return err == nil }
	writer, err := windrow.CreateTable(path, nil)
	check(t, err)
	equal(t, isThere(), true)
	check(t, writer.Close())
	equal(t, isThere(), false)
	_, err = windrow.CreateTable(path, nil)
	check(t, err)
	for tries := 0; isThere(); tries++ {
		if tries == 1000 {
			t.Fatal("the file is still there")
		}
		runtime.GC()
		time.Sleep(time.Millisecond)
	}
}
