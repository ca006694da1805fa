package windrow_test

import (
	"context"
	"errors"
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	windrow "github.com/windrow-db/windrow/bindings/go"
)

func TestChangesOfOneKey(t *testing.T) {
	_, main := opened(t, nil)
	key := []byte("a")
	for _, expected := range []bool{true, false} {
		was, err := main.PutIfAbsent(key, []byte("1"))
		check(t, err)
		equal(t, was, expected)
	}
	value, err := main.Take(key)
	check(t, err)
	equal(t, string(value), "1")
	value, err = main.Take(key)
	is(t, err, windrow.ErrKeyNotFound)
	if value != nil {
		t.Fatal(value)
	}
	put(t, main, "a", "")
	value, err = main.Take(key)
	check(t, err)
	if value == nil || len(value) != 0 {
		t.Fatal(value)
	}
	put(t, main, "a", "1")
	taken := make(chan error, 8)
	var group sync.WaitGroup
	for range cap(taken) {
		group.Add(1)
		go func() {
			defer group.Done()
			_, err := main.Take(key)
			taken <- err
		}()
	}
	group.Wait()
	close(taken)
	count := 0
	for err := range taken {
		if err == nil {
			count++
		} else {
			is(t, err, windrow.ErrKeyNotFound)
		}
	}
	equal(t, count, 1)
	_, err = main.PutIfAbsent(nil, nil)
	is(t, err, windrow.ErrInvalidArgument)
}

func TestManyKeysAtOnce(t *testing.T) {
	db, main := opened(t, nil)
	large := strings.Repeat("x", 5000)
	put(t, main, "a", "1", "b", "", "c", large)
	snapshot, err := db.Snapshot()
	check(t, err)
	check(t, db.Flush(context.Background()))
	put(t, main, "a", "2")
	keys := [][]byte{[]byte("c"), []byte("missing"), []byte("a"), []byte("b"), []byte("a")}
	for view, expected := range map[*windrow.View][]string{
		&main.View:        {large, "", "2", "", "2"},
		main.At(snapshot): {large, "", "1", "", "1"},
	} {
		found, err := view.MultiGet(keys...)
		check(t, err)
		equal(t, len(found), len(keys))
		for i, value := range found {
			equal(t, string(value), expected[i])
			equal(t, value == nil, i == 1)
			// The values share memory, but none writes over the next one.
			_ = append(value, "overwritten"...)
		}
		equal(t, string(found[2]), expected[2])
	}
	for _, keys := range [][][]byte{{}, {[]byte("missing")}} {
		found, err := main.MultiGet(keys...)
		check(t, err)
		equal(t, len(found), len(keys))
	}
	for _, keys := range [][][]byte{{[]byte("a"), nil}, {nil, {}}} {
		_, err = main.MultiGet(keys...)
		is(t, err, windrow.ErrInvalidArgument)
	}
}

func TestPinnedValues(t *testing.T) {
	db, main := opened(t, nil)
	large := strings.Repeat("x", 100_000)
	put(t, main, "empty", "", "large", large)
	check(t, db.Flush(context.Background()))
	check(t, main.GetPinned([]byte("large"), func(value []byte) error {
		put(t, main, "large", "2")
		equal(t, string(value), large)
		return nil
	}))
	check(t, main.GetPinned([]byte("empty"), func(value []byte) error {
		if value == nil || len(value) != 0 {
			t.Fatal(value)
		}
		return nil
	}))
	failed := errors.New("failed")
	is(t, main.GetPinned([]byte("large"), func([]byte) error { return failed }), failed)
	is(t, main.GetPinned([]byte("missing"), func([]byte) error { return failed }), windrow.ErrKeyNotFound)
	is(t, main.GetPinned(nil, func([]byte) error { return failed }), windrow.ErrInvalidArgument)
	check(t, db.Close())
	is(t, main.GetPinned([]byte("large"), func([]byte) error { return failed }), windrow.ErrClosed)
}

// expires says when a key expires: "never", "hour" for in about an hour, "missing".
func expires(t *testing.T, at time.Time, err error) string {
	t.Helper()
	if errors.Is(err, windrow.ErrKeyNotFound) {
		return "missing"
	}
	check(t, err)
	if at.IsZero() {
		return "never"
	}
	if left := time.Until(at); left > time.Hour+time.Minute || left < time.Minute {
		t.Fatalf("%v are left", left)
	}
	return "hour"
}

func TestEntriesExpire(t *testing.T) {
	db, main := opened(t, nil)
	key := []byte("a")
	put(t, main, "stays", "1")
	check(t, main.PutWithTTL(key, []byte("1"), time.Hour, windrow.Sync))
	var batch windrow.Batch
	batch.PutWithTTL(main, []byte("b"), []byte("2"), time.Hour)
	check(t, db.Write(&batch))
	transaction, err := db.Begin(windrow.Serializable)
	check(t, err)
	check(t, transaction.PutWithTTL(main, []byte("c"), []byte("3"), time.Hour))
	at, err := transaction.ExpiresAt(main, []byte("c"))
	equal(t, expires(t, at, err), "hour")
	at, err = transaction.ExpiresAt(main, []byte("missing"))
	equal(t, expires(t, at, err), "missing")
	is(t, transaction.PutWithTTL(main, key, nil, -1), windrow.ErrInvalidArgument)
	check(t, transaction.Commit())
	for key, expected := range map[string]string{
		"a": "hour", "b": "hour", "c": "hour", "stays": "never", "missing": "missing",
	} {
		at, err := main.ExpiresAt([]byte(key))
		equal(t, expires(t, at, err), expected)
	}
	snapshot, err := db.Snapshot()
	check(t, err)
	put(t, main, "a", "1")
	at, err = main.At(snapshot).ExpiresAt(key)
	equal(t, expires(t, at, err), "hour")
	at, err = main.ExpiresAt(key)
	equal(t, expires(t, at, err), "never")

	cursor, err := main.Cursor(windrow.All)
	check(t, err)
	at, err = cursor.ExpiresAt()
	equal(t, expires(t, at, err), "never")
	equal(t, cursor.Seek([]byte("b")), true)
	at, err = cursor.ExpiresAt()
	equal(t, expires(t, at, err), "hour")
	check(t, cursor.Close())
	_, err = cursor.ExpiresAt()
	is(t, err, windrow.ErrClosed)

	// What has expired is gone, without a wait of a fixed time.
	check(t, main.PutWithTTL(key, []byte("gone"), time.Nanosecond))
	for get(t, main, "a") != "missing" {
		time.Sleep(time.Millisecond)
	}
	at, err = main.ExpiresAt(key)
	equal(t, expires(t, at, err), "missing")
	check(t, main.PutWithTTL(key, nil, math.MaxInt64))

	// A time to live that is negative is an error, of a batch at its write.
	is(t, main.PutWithTTL(key, []byte("1"), -1), windrow.ErrInvalidArgument)
	batch.PutWithTTL(main, key, []byte("1"), -1)
	is(t, db.Write(&batch), windrow.ErrInvalidArgument)
	_, err = batch.Bytes()
	is(t, err, windrow.ErrInvalidArgument)
	batch.Clear()
	check(t, db.Write(&batch))
	equal(t, get(t, main, "a"), "")

	daily, err := db.KeyspaceWith("daily", &windrow.KeyspaceOptions{DefaultTTL: time.Hour})
	check(t, err)
	put(t, daily, "a", "1")
	at, err = daily.ExpiresAt(key)
	equal(t, expires(t, at, err), "hour")
	_, err = db.KeyspaceWith("never", &windrow.KeyspaceOptions{DefaultTTL: -1})
	is(t, err, windrow.ErrInvalidArgument)
}

func TestBatchesAsBytes(t *testing.T) {
	db, main := opened(t, merging("lists", windrow.MergeOperator{Name: "windrow.append.2c"}))
	lists := keyspace(t, db, "lists")
	put(t, main, "c", "0", "m", "0", "z", "0")
	var batch windrow.Batch
	batch.Put(main, []byte("a"), []byte("1"))
	batch.Put(main, []byte("b"), nil)
	batch.PutWithTTL(main, []byte("d"), []byte("4"), time.Hour)
	batch.Delete(main, []byte("c"))
	batch.Merge(lists, []byte("list"), []byte("1"))
	batch.DeleteRange(main, windrow.Range{Start: []byte("m"), End: []byte("n")})
	batch.DeleteRange(main, windrow.Range{Start: []byte("z")})
	carried, err := batch.Bytes()
	check(t, err)
	again, err := db.BatchFromBytes(carried)
	check(t, err)
	carried[0] ^= 0xff
	equal(t, again.Len(), 7)
	again.Merge(lists, []byte("list"), []byte("2"))
	equal(t, again.Len(), 8)
	writes, err := again.Writes()
	check(t, err)
	found := ""
	for _, write := range writes {
		value := string(write.Value)
		if write.Value == nil {
			value = "nil"
		}
		found += write.Keyspace + " " + string('0'+rune(write.Kind)) + " " + string(write.Key) + "=" + value
		if !write.ExpiresAt.IsZero() {
			found += " for an " + expires(t, write.ExpiresAt, nil)
		}
		found += "\n"
	}
	equal(t, found, "main 0 a=1\nmain 0 b=\nmain 0 d=4 for an hour\nmain 1 c=nil\nlists 2 list=1\nmain 3 m=n\nmain 3 z=nil\n"+
		"lists 2 list=2\n")
	equal(t, get(t, main, "c"), "0")
	carried, err = again.Bytes()
	check(t, err)
	for range 2 {
		check(t, db.Write(again, windrow.Sync))
	}
	equal(t, text(t, main.Entries(windrow.All)), "a=1 b= d=4 ")
	equal(t, get(t, lists, "list"), "1,2,1,2")

	_, err = db.BatchFromBytes(carried[:len(carried)-1])
	is(t, err, windrow.ErrCorruption)
	_, err = db.BatchFromBytes(nil)
	is(t, err, windrow.ErrCorruption)
	other, _ := opened(t, nil)
	_, err = other.BatchFromBytes(carried)
	is(t, err, windrow.ErrNotFound)
	keyspace(t, other, "lists")
	is(t, other.Write(again), windrow.ErrInvalidArgument)
	again.Clear()
	equal(t, again.Len(), 0)
	writes, err = again.Writes()
	check(t, err)
	equal(t, len(writes), 0)
	batch.Put(main, nil, nil)
	_, err = batch.Bytes()
	is(t, err, windrow.ErrInvalidArgument)

	last, err := db.BatchFromBytes(carried)
	check(t, err)
	check(t, db.Close())
	_, err = last.Bytes()
	is(t, err, windrow.ErrClosed)
	_, err = last.Writes()
	is(t, err, windrow.ErrClosed)
	is(t, db.Write(last), windrow.ErrClosed)
	_, err = db.BatchFromBytes(carried)
	is(t, err, windrow.ErrClosed)
}

func TestMergedCursors(t *testing.T) {
	db, first := opened(t, nil)
	second := keyspace(t, db, "second")
	put(t, first, "a", "1", "b", "2", "d", "4")
	put(t, second, "b", "9", "c", strings.Repeat("x", 5000))
	found := ""
	for entry, err := range db.Merged(windrow.All, first, second) {
		check(t, err)
		which := 1
		if entry.Keyspace == second {
			which = 2
		}
		found += string(entry.Key) + "=" + string(entry.Value[:1]) + string('0'+rune(which)) + " "
	}
	equal(t, found, "a=11 b=21 b=92 c=x2 d=41 ")
	for entry, err := range db.Merged(windrow.Range{Start: []byte("c")}, second, first) {
		check(t, err)
		equal(t, entry.Keyspace == second, true)
		break
	}

	cursor, err := db.MergedCursor(windrow.Range{Start: []byte("b")}, first, second)
	check(t, err)
	if cursor.Keyspace() != nil {
		t.Fatal("a keyspace without an entry")
	}
	equal(t, cursor.Seek([]byte("b")), true)
	equal(t, cursor.Keyspace() == first, true)
	equal(t, cursor.Next(), true)
	equal(t, cursor.Keyspace() == second && string(cursor.Key()) == "b", true)
	value, err := cursor.Value()
	check(t, err)
	equal(t, string(value), "9")
	equal(t, cursor.Last(), true)
	equal(t, cursor.Keyspace() == first && string(cursor.Key()) == "d", true)
	equal(t, cursor.Previous() && cursor.Keyspace() == second, true)
	check(t, cursor.Close())
	plain, err := first.Cursor(windrow.All)
	check(t, err)
	if !plain.First() || plain.Keyspace() != nil {
		t.Fatal("the keyspace of a cursor over one")
	}
	check(t, plain.Close())

	other, foreign := opened(t, nil)
	_, err = other.MergedCursor(windrow.All, foreign, first)
	is(t, err, windrow.ErrInvalidArgument)
	check(t, second.Close())
	_, err = db.MergedCursor(windrow.All, first, second)
	is(t, err, windrow.ErrClosed)
	check(t, db.Close())
	for _, err := range db.Merged(windrow.All, first) {
		is(t, err, windrow.ErrClosed)
	}
}

func TestPreparedTransactions(t *testing.T) {
	path := t.TempDir()
	db, err := windrow.Open(path, nil)
	check(t, err)
	main := keyspace(t, db, "main")
	prepare := func(key, name string) error {
		transaction, err := db.Begin(windrow.Serializable)
		check(t, err)
		defer transaction.Rollback()
		check(t, transaction.Put(main, []byte(key), []byte("1")))
		cursor, err := transaction.Cursor(main, windrow.All)
		check(t, err)
		err = transaction.Prepare(name)
		equal(t, cursor.First(), false)
		is(t, cursor.Err(), windrow.ErrClosed)
		is(t, transaction.Prepare(name), windrow.ErrClosed)
		is(t, transaction.Commit(), windrow.ErrClosed)
		return err
	}
	check(t, prepare("a", "first"))
	check(t, prepare("b", "second"))
	is(t, prepare("c", "first"), windrow.ErrAlreadyExists)
	is(t, prepare("c", "a\x00b"), windrow.ErrInvalidArgument)
	is(t, main.Put([]byte("a"), []byte("2")), windrow.ErrConflict)
	check(t, db.Close())
	_, err = db.Prepared()
	is(t, err, windrow.ErrClosed)

	db, err = windrow.Open(path, nil)
	check(t, err)
	defer db.Close()
	main = keyspace(t, db, "main")
	names, err := db.Prepared()
	check(t, err)
	equal(t, strings.Join(names, " "), "first second")
	equal(t, text(t, main.Entries(windrow.All)), "")
	check(t, db.CommitPrepared("first", windrow.Sync))
	check(t, db.RollbackPrepared("second"))
	is(t, db.CommitPrepared("first"), windrow.ErrNotFound)
	is(t, db.RollbackPrepared("second"), windrow.ErrNotFound)
	equal(t, text(t, main.Entries(windrow.All)), "a=1 ")
	put(t, main, "b", "2")

	ctx, cancel := context.WithCancel(context.Background())
	transaction, err := db.BeginLocking(ctx)
	check(t, err)
	cancel()
	is(t, transaction.Prepare("third"), context.Canceled)
	is(t, transaction.Commit(), context.Canceled)
}
