package windrow_test

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	windrow "github.com/windrow-db/windrow/bindings/go"
)

var seeds = flag.Uint64("seeds", 5, "how many random histories run")

// model is what a keyspace should have.
type model map[string]string

func (model model) in(keys windrow.Range) []string {
	found := slices.Sorted(maps.Keys(model))
	return slices.DeleteFunc(found, func(key string) bool {
		return key < string(keys.Start) || keys.End != nil && key >= string(keys.End)
	})
}

func (model model) text(keys windrow.Range, backward bool) string {
	found := model.in(keys)
	if backward {
		slices.Reverse(found)
	}
	text := ""
	for _, key := range found {
		text += key + "=" + model[key] + " "
	}
	return text
}

func (model model) delete(keys windrow.Range) {
	for _, key := range model.in(keys) {
		delete(model, key)
	}
}

// Random calls have the answers of a sorted map: reads, cursors, batches, snapshots, transactions, and reopens.
func TestRandomHistories(t *testing.T) {
	for seed := range *seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { history(t, rand.New(rand.NewPCG(seed, 0))) })
	}
}

func history(t *testing.T, random *rand.Rand) {
	path := t.TempDir()
	options := &windrow.Options{Keyspace: &windrow.KeyspaceOptions{MemtableBytes: 64 << 10, BlockBytes: 256}}
	db, err := windrow.Open(path, options)
	check(t, err)
	defer func() { check(t, db.Close()) }()
	main, present := keyspace(t, db, "main"), model{}
	var snapshot *windrow.Snapshot
	var past model

	key := func() string {
		text := make([]byte, 1+random.IntN(3))
		for i := range text {
			text[i] = "ab\xff"[random.IntN(3)]
		}
		return string(text)
	}
	value := func() string {
		return strings.Repeat(string(rune('a'+random.IntN(26))), random.IntN(8)*random.IntN(300))
	}
	keys := func() windrow.Range {
		switch random.IntN(4) {
		case 0:
			return windrow.All
		case 1:
			return windrow.Prefix([]byte(key()))
		case 2:
			return windrow.Range{Start: []byte(key())}
		default:
			return windrow.Range{Start: []byte(key()), End: []byte(key())}
		}
	}
	for range 400 {
		switch random.IntN(12) {
		case 0, 1, 2:
			key, value := key(), value()
			put(t, main, key, value)
			present[key] = value
		case 3:
			key := key()
			check(t, main.Delete([]byte(key)))
			delete(present, key)
		case 4:
			if keys := keys(); keys.Start != nil {
				check(t, main.DeleteRange(keys))
				present.delete(keys)
			}
		case 5, 6:
			// The same writes by a batch, or by a transaction that may be rolled back.
			var batch windrow.Batch
			transaction, err := db.Begin(windrow.Serializable)
			check(t, err)
			after := maps.Clone(present)
			for range random.IntN(5) {
				key, value := key(), value()
				batch.Put(main, []byte(key), []byte(value))
				check(t, transaction.Put(main, []byte(key), []byte(value)))
				after[key] = value
			}
			gone := windrow.Prefix([]byte(key()))
			batch.DeleteRange(main, gone)
			check(t, transaction.DeleteRange(main, gone))
			after.delete(gone)
			keys := keys()
			equal(t, text(t, transaction.Entries(main, keys)), after.text(keys, false))
			equal(t, text(t, transaction.Backward(main, keys)), after.text(keys, true))
			switch random.IntN(3) {
			case 0:
				transaction.Rollback()
			case 1:
				check(t, transaction.Commit())
				present = after
			default:
				transaction.Rollback()
				check(t, db.Write(&batch))
				present = after
			}
		case 7:
			if snapshot != nil {
				check(t, snapshot.Close())
			}
			snapshot, err = db.Snapshot()
			check(t, err)
			past = maps.Clone(present)
		case 8:
			view, expected := &main.View, present
			if snapshot != nil && random.IntN(2) == 0 {
				view, expected = main.At(snapshot), past
			}
			keys := keys()
			equal(t, text(t, view.Entries(keys)), expected.text(keys, false))
			equal(t, text(t, view.Backward(keys)), expected.text(keys, true))
		case 9:
			key := key()
			expected, ok := present[key]
			if !ok {
				expected = "missing"
			}
			equal(t, get(t, main, key), expected)
		case 10:
			walkAround(t, random, main, present, keys())
		default:
			switch random.IntN(8) {
			case 0, 1, 2:
				check(t, db.Flush(context.Background()))
			case 3, 4, 5, 6:
				check(t, main.Compact(context.Background(), keys()))
			default:
				check(t, db.Close())
				snapshot = nil
				db, err = windrow.Open(path, options)
				check(t, err)
				main = keyspace(t, db, "main")
			}
		}
	}
	check(t, db.Verify(context.Background()))
}

// walkAround moves a cursor at random.
func walkAround(t *testing.T, random *rand.Rand, main *windrow.Keyspace, present model, keys windrow.Range) {
	expected := present.in(keys)
	cursor, err := main.Cursor(keys)
	check(t, err)
	defer cursor.Close()
	at, moved := -1, false
	for range 20 {
		switch choice := random.IntN(6); {
		case choice == 0:
			at, moved = 0, cursor.First()
		case choice == 1:
			at, moved = len(expected)-1, cursor.Last()
		case choice == 2:
			key := string("ab\xff"[random.IntN(3)])
			at, _ = slices.BinarySearch(expected, key)
			moved = cursor.Seek([]byte(key))
		case choice == 3:
			key := string("ab\xff"[random.IntN(3)])
			at, _ = slices.BinarySearch(expected, key)
			at--
			moved = cursor.SeekBefore([]byte(key))
		case !moved:
			continue
		case choice == 4:
			at++
			moved = cursor.Next()
		default:
			at--
			moved = cursor.Previous()
		}
		check(t, cursor.Err())
		equal(t, moved, at >= 0 && at < len(expected))
		if moved {
			equal(t, string(cursor.Key()), expected[at])
			value, err := cursor.Value()
			check(t, err)
			equal(t, string(value), present[expected[at]])
		}
	}
}
