package windrow_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	windrow "github.com/windrow-db/windrow/bindings/go"
)

// listOperator makes lists with commas. The operand "bad" is an error, and "worse" a panic.
var listOperator = windrow.MergeOperator{
	Name: "test.list",
	Merge: func(key, base []byte, operands [][]byte) ([]byte, error) {
		if base != nil {
			operands = append([][]byte{base}, operands...)
		}
		return listOf(operands)
	},
	PartialMerge: func(key []byte, operands [][]byte) ([]byte, bool, error) {
		list, err := listOf(operands)
		return list, err == nil && string(key) != "whole", nil
	},
}

func listOf(operands [][]byte) ([]byte, error) {
	for _, operand := range operands {
		switch string(operand) {
		case "bad":
			return nil, errors.New("a bad operand")
		case "worse":
			panic("worse")
		}
	}
	return bytes.Join(operands, []byte(",")), nil
}

func merge(t testing.TB, keyspace *windrow.Keyspace, key string, operands ...string) {
	t.Helper()
	for _, operand := range operands {
		check(t, keyspace.Merge([]byte(key), []byte(operand)))
	}
}

// Each way to read, and compactions, call the operator of the program.
func TestAMergeOperatorOfTheProgram(t *testing.T) {
	path := t.TempDir()
	options := merging("main", listOperator)
	db, err := windrow.Open(path, options)
	check(t, err)
	main := keyspace(t, db, "main")
	put(t, main, "based", "0", "empty", "")
	for _, key := range []string{"based", "empty", "none", "whole"} {
		merge(t, main, key, "1", "", strings.Repeat("x", 1000))
	}
	long := strings.Repeat("x", 1000)
	all := "based=0,1,," + long + " empty=,1,," + long + " none=1,," + long + " whole=1,," + long + " "
	for range 3 {
		equal(t, text(t, main.Entries(windrow.All)), all)
		equal(t, get(t, main, "none"), "1,,"+long)
		snapshot, err := db.Snapshot()
		check(t, err)
		equal(t, get(t, main.At(snapshot), "empty"), ",1,,"+long)
		check(t, snapshot.Close())
		transaction, err := db.Begin(windrow.Serializable)
		check(t, err)
		check(t, transaction.Merge(main, []byte("none"), []byte("2")))
		value, err := transaction.Get(main, []byte("none"))
		check(t, err)
		equal(t, string(value), "1,,"+long+",2")
		check(t, transaction.Put(main, []byte("other"), nil))
		equal(t, text(t, transaction.Entries(main, windrow.Prefix([]byte("none")))), "none=1,,"+long+",2 ")
		transaction.Rollback()
		cursor, err := main.Cursor(windrow.All)
		check(t, err)
		equal(t, cursor.Last() && string(cursor.Key()) == "whole", true)
		check(t, cursor.Close())
		check(t, main.Compact(context.Background(), windrow.All))
	}
	var batch windrow.Batch
	batch.Merge(main, []byte("none"), []byte("3"))
	check(t, db.Write(&batch))
	check(t, main.Delete([]byte("based")))
	equal(t, strings.HasSuffix(get(t, main, "none"), ",3"), true)
	check(t, db.Close())

	db, err = windrow.Open(path, nil)
	check(t, err)
	_, err = keyspace(t, db, "main").Get([]byte("none"))
	is(t, err, windrow.ErrMerge)
	check(t, db.Close())
}

func TestAFailedMergeIsAnErrorOfItsKey(t *testing.T) {
	db, main := opened(t, merging("main", listOperator))
	merge(t, main, "a", "1", "bad")
	merge(t, main, "b", "1", "2")
	merge(t, main, "c", "worse")
	for range 2 {
		for key, text := range map[string]string{"a": "a bad operand", "c": "a panic: worse"} {
			_, err := main.Get([]byte(key))
			is(t, err, windrow.ErrMerge)
			if !strings.Contains(err.Error(), text) {
				t.Error(err)
			}
		}
		equal(t, get(t, main, "b"), "1,2")
		check(t, main.Compact(context.Background(), windrow.All))
		check(t, db.WaitIdle(context.Background()))
	}
}

// Goroutines whose stacks grow in the operator read while others write and compact.
func TestMergesRunInManyGoroutines(t *testing.T) {
	var deep func(int) int
	deep = func(depth int) int {
		var space [512]byte
		if depth == 0 {
			return 0
		}
		return deep(depth-1) + int(space[depth%512]) + 1
	}
	operator := listOperator
	var calls atomic.Int64
	operator.Merge = func(key, base []byte, operands [][]byte) ([]byte, error) {
		if calls.Add(1)%16 == 0 {
			runtime.GC()
		}
		deep(200)
		return listOperator.Merge(key, base, operands)
	}
	options := merging("main", operator)
	options.Keyspace = &windrow.KeyspaceOptions{MemtableBytes: 64 << 10}
	_, main := opened(t, options)
	var group sync.WaitGroup
	for worker := range 4 {
		group.Add(1)
		go func() {
			defer group.Done()
			key := fmt.Appendf(nil, "%d", worker)
			for i := range 200 {
				if err := main.Merge(key, fmt.Appendf(nil, "%03d", i)); err != nil {
					t.Error(err)
				}
				value, err := main.Get(key)
				if err != nil || len(value) != 4*i+3 || !bytes.HasSuffix(value, fmt.Appendf(nil, "%03d", i)) {
					t.Errorf("%s: %s %v", key, value, err)
				}
				for entry, err := range main.Entries(windrow.Prefix(key)) {
					if err != nil || !bytes.Equal(entry.Value, value) {
						t.Errorf("%s: %s %v", key, entry.Value, err)
					}
				}
			}
			if err := main.Compact(context.Background(), windrow.All); err != nil {
				t.Error(err)
			}
		}()
	}
	group.Wait()
}

func TestACompactionFilterOfTheProgram(t *testing.T) {
	var kept *windrow.Candidate
	db, main := opened(t, &windrow.Options{CompactionFilters: map[string]windrow.CompactionFilter{
		"main": {Name: "test.filter", Decide: func(entry *windrow.Candidate) (windrow.Decision, error) {
			value, err := entry.Value()
			if err != nil || uint64(len(value)) != entry.ValueLength() {
				return windrow.Remove, fmt.Errorf("%d bytes: %w", len(value), err)
			}
			kept = entry
			switch string(entry.Key()) {
			case "remove":
				return windrow.Remove, nil
			case "replace":
				return windrow.Replace(append([]byte("new "), value...)), nil
			case "expires":
				if entry.ExpiresAt().Before(time.Now()) {
					return windrow.Remove, nil
				}
			case "fail":
				return windrow.Remove, errors.New("failed")
			case "panic":
				panic("failed")
			}
			return windrow.Keep, nil
		}},
	}})
	put(t, main, "fail", "1", "keep", "2", "panic", "3", "remove", "4", "replace", strings.Repeat("5", 2000))
	check(t, main.PutWithTTL([]byte("expires"), []byte("6"), time.Hour))
	check(t, main.Compact(context.Background(), windrow.All))
	check(t, db.WaitIdle(context.Background()))
	equal(t, text(t, main.Entries(windrow.All)),
		"expires=6 fail=1 keep=2 panic=3 replace=new "+strings.Repeat("5", 2000)+" ")
	if kept.Key() != nil || kept.ValueLength() != 0 || !kept.ExpiresAt().IsZero() {
		t.Error("the entry is valid after the call")
	}
	_, err := kept.Value()
	is(t, err, windrow.ErrInvalidArgument)
	_, err = windrow.Open(t.TempDir(), &windrow.Options{CompactionFilters: map[string]windrow.CompactionFilter{"main": {}}})
	is(t, err, windrow.ErrInvalidArgument)
}

func TestAListenerHearsOfTheWork(t *testing.T) {
	events := make(chan windrow.Event, 1000)
	db, err := windrow.Open(t.TempDir(), &windrow.Options{Listener: func(event windrow.Event) { events <- event }})
	check(t, err)
	main := keyspace(t, db, "main")
	put(t, main, "a", "1")
	check(t, main.Compact(context.Background(), windrow.All))
	for event := range events {
		var members struct{ Event, Keyspace string }
		check(t, json.Unmarshal(event.JSON, &members))
		equal(t, members.Event, event.Name)
		if event.Name == "flush_ended" {
			equal(t, members.Keyspace, "main")
			break
		}
	}
	check(t, db.Close())
}

// A listener may make all calls, also the close.
func TestAListenerMayCloseTheDatabase(t *testing.T) {
	opened, closed := make(chan *windrow.DB, 1), make(chan error, 1)
	var once sync.Once
	db, err := windrow.Open(t.TempDir(), &windrow.Options{Listener: func(windrow.Event) {
		once.Do(func() {
			db := <-opened
			if _, err := db.Stats(); err != nil {
				closed <- err
				return
			}
			closed <- db.Close()
		})
	}})
	check(t, err)
	main := keyspace(t, db, "main")
	put(t, main, "a", "1")
	opened <- db
	_ = db.Flush(context.Background())
	check(t, <-closed)
	is(t, main.Put([]byte("b"), nil), windrow.ErrClosed)
}
