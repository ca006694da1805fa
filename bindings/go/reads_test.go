package windrow_test

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"

	windrow "github.com/windrow-db/windrow/bindings/go"
)

func TestValuesOfAllSizes(t *testing.T) {
	db, main := opened(t, &windrow.Options{Keyspace: &windrow.KeyspaceOptions{MemtableBytes: 1 << 20}})
	sizes := []int{0, 1, 511, 512, 513, 2047, 2048, 5000, 65528, 65536, 70000, 1 << 20}
	for _, size := range sizes {
		put(t, main, fmt.Sprintf("%08d", size), strings.Repeat("v", size))
	}
	for range 2 {
		for _, size := range sizes {
			equal(t, len(get(t, main, fmt.Sprintf("%08d", size))), size)
		}
		for _, entries := range []iter.Seq2[windrow.Entry, error]{main.Entries(windrow.All), main.Backward(windrow.All)} {
			var found []int
			for entry, err := range entries {
				check(t, err)
				equal(t, fmt.Sprintf("%08d", len(entry.Value)), string(entry.Key))
				found = append(found, len(entry.Value))
			}
			slices.Sort(found)
			if !slices.Equal(found, sizes) {
				t.Fatal(found)
			}
		}
		check(t, db.Flush(context.Background()))
	}
	longest := bytes.Repeat([]byte("k"), 65536)
	check(t, main.Put(longest, []byte("1")))
	cursor, err := main.Cursor(windrow.All)
	check(t, err)
	defer cursor.Close()
	if !cursor.Last() || !bytes.Equal(cursor.Key(), longest) {
		t.Fatal("the longest key is not the last")
	}
	has, err := main.Has(longest)
	check(t, err)
	equal(t, has, true)
}

func TestRangesAndPrefixes(t *testing.T) {
	_, main := opened(t, nil)
	put(t, main, "a", "1", "ab", "2", "b", "3", "b\xff", "4", "b\xff\xff", "5", "c", "6", "\xff", "7", "\xff\xff", "8")
	between := func(start, end string) windrow.Range {
		return windrow.Range{Start: []byte(start), End: []byte(end)}
	}
	for _, one := range []struct {
		keys     windrow.Range
		expected string
	}{
		{windrow.All, "a=1 ab=2 b=3 b\xff=4 b\xff\xff=5 c=6 \xff=7 \xff\xff=8 "},
		{between("ab", "c"), "ab=2 b=3 b\xff=4 b\xff\xff=5 "},
		{windrow.Range{Start: []byte("c")}, "c=6 \xff=7 \xff\xff=8 "},
		{windrow.Range{End: []byte("b")}, "a=1 ab=2 "},
		{between("", ""), ""},
		{between("c", "a"), ""},
		{windrow.Prefix([]byte("a")), "a=1 ab=2 "},
		{windrow.Prefix([]byte("b\xff")), "b\xff=4 b\xff\xff=5 "},
		{windrow.Prefix([]byte("\xff")), "\xff=7 \xff\xff=8 "},
		{windrow.Prefix(nil), "a=1 ab=2 b=3 b\xff=4 b\xff\xff=5 c=6 \xff=7 \xff\xff=8 "},
		{windrow.Prefix([]byte("d")), ""},
	} {
		equal(t, text(t, main.Entries(one.keys)), one.expected)
		parts := strings.SplitAfter(one.expected, " ")
		slices.Reverse(parts)
		equal(t, text(t, main.Backward(one.keys)), strings.Join(parts, ""))
		keys := ""
		for key, err := range main.Keys(one.keys) {
			check(t, err)
			value, err := main.Get(key)
			check(t, err)
			keys += string(key) + "=" + string(value) + " "
		}
		equal(t, keys, one.expected)
	}
}

func TestEntriesStayValidAndApart(t *testing.T) {
	db, main := opened(t, nil)
	var batch windrow.Batch
	for i := range 10000 {
		batch.Put(main, fmt.Appendf(nil, "%06d", i), fmt.Appendf(nil, "value %d", i))
	}
	check(t, db.Write(&batch))
	var all []windrow.Entry
	for entry, err := range main.Entries(windrow.All) {
		check(t, err)
		_ = append(entry.Key, "overwrites the value?"...)
		_ = append(entry.Value, "overwrites the next entry?"...)
		all = append(all, entry)
	}
	equal(t, len(all), 10000)
	for i, entry := range all {
		equal(t, string(entry.Key), fmt.Sprintf("%06d", i))
		equal(t, string(entry.Value), fmt.Sprintf("value %d", i))
	}
	count := 0
	for range main.Backward(windrow.All) {
		if count++; count == 700 {
			break
		}
	}
	next, stop := iter.Pull2(main.Entries(windrow.All))
	entry, err, ok := next()
	check(t, err)
	equal(t, ok, true)
	equal(t, string(entry.Key), "000000")
	stop()
}

func TestCursorsGoBothWays(t *testing.T) {
	_, main := opened(t, nil)
	put(t, main, "a", "1", "b", "2", "c", "3")
	cursor, err := main.Cursor(windrow.Range{End: []byte("d")})
	check(t, err)
	put(t, main, "bb", "later")
	at := func(moved bool) string {
		t.Helper()
		check(t, cursor.Err())
		equal(t, cursor.Valid(), moved)
		value, err := cursor.Value()
		check(t, err)
		return string(cursor.Key()) + string(value)
	}
	equal(t, at(false), "")
	equal(t, at(cursor.First()), "a1")
	equal(t, at(cursor.Next()), "b2")
	equal(t, at(cursor.Next()), "c3")
	equal(t, at(cursor.Previous()), "b2")
	equal(t, at(cursor.Seek([]byte("bb"))), "c3")
	equal(t, at(cursor.SeekBefore([]byte("b"))), "a1")
	equal(t, at(cursor.SeekBefore([]byte("z"))), "c3")
	equal(t, at(cursor.SeekBefore([]byte("a"))), "")
	equal(t, at(cursor.Last()), "c3")
	equal(t, at(cursor.Next()), "")
	equal(t, at(cursor.Seek([]byte("a"))), "a1")
	equal(t, at(cursor.Seek(nil)), "a1")
	check(t, cursor.Close())
	check(t, cursor.Close())
	equal(t, cursor.First() || cursor.SeekBefore([]byte("b")), false)
	is(t, cursor.Err(), windrow.ErrClosed)
	_, err = cursor.Value()
	is(t, err, windrow.ErrClosed)
}

// The library may give a new cursor the address of a closed one of the same transaction.
func TestAClosedCursorIsNoOther(t *testing.T) {
	db, main := opened(t, nil)
	put(t, main, "a", "1", "b", "2", "c", "3")
	transaction, err := db.Begin(windrow.Serializable)
	check(t, err)
	defer transaction.Rollback()
	for range 100 {
		closed, err := transaction.Cursor(main, windrow.All)
		check(t, err)
		check(t, closed.Close())
		cursor, err := transaction.Cursor(main, windrow.All)
		check(t, err)
		equal(t, cursor.First(), true)
		equal(t, closed.Next(), false)
		is(t, closed.Err(), windrow.ErrClosed)
		check(t, closed.Close())
		equal(t, cursor.Next(), true)
		equal(t, string(cursor.Key()), "b")
		check(t, cursor.Close())
	}
}

func TestSnapshotsDoNotChange(t *testing.T) {
	db, main := opened(t, nil)
	put(t, main, "a", "1")
	snapshot, err := db.Snapshot()
	check(t, err)
	put(t, main, "a", "2", "b", "3")
	view := main.At(snapshot)
	equal(t, get(t, view, "a"), "1")
	equal(t, text(t, view.Entries(windrow.All)), "a=1 ")
	equal(t, text(t, main.Entries(windrow.All)), "a=2 b=3 ")
	has, err := view.Has([]byte("b"))
	check(t, err)
	equal(t, has, false)
	entries := view.Entries(windrow.All)
	check(t, snapshot.Close())
	check(t, snapshot.Close())
	_, err = view.Get([]byte("a"))
	is(t, err, windrow.ErrClosed)
	for _, err := range entries {
		is(t, err, windrow.ErrClosed)
	}
}
