package windrow_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	windrow "github.com/windrow-db/windrow/bindings/go"
)

// entries counts the entries of the keyspace main in a state.
func entries(t *testing.T, db *windrow.DB) (count int) {
	t.Helper()
	keyspace, err := db.ExistingKeyspace("main")
	if errors.Is(err, windrow.ErrNotFound) {
		return 0
	}
	check(t, err)
	for _, err := range keyspace.Entries(windrow.All) {
		check(t, err)
		count++
	}
	is(t, keyspace.Put([]byte("a"), nil), windrow.ErrReadOnly)
	return count
}

func TestASecondaryReadsBesideTheWriter(t *testing.T) {
	ctx := context.Background()
	path := t.TempDir()
	_, err := windrow.OpenSecondary(path, nil)
	is(t, err, windrow.ErrNotFound)
	writer, err := windrow.Open(path, small())
	check(t, err)
	secondary, err := windrow.OpenSecondary(path, nil)
	check(t, err)
	empty, err := secondary.DB()
	check(t, err)
	main := keyspace(t, writer, "main")
	put(t, main, "a", "1", "b", "2")
	two, err := secondary.CatchUp(ctx)
	check(t, err)
	put(t, main, "c", "3")
	check(t, main.Delete([]byte("a")))
	check(t, writer.Flush(ctx))
	put(t, main, "d", "4")
	three, err := secondary.CatchUp(ctx)
	check(t, err)
	for range 2 {
		equal(t, entries(t, empty), 0)
		equal(t, entries(t, two), 2)
		equal(t, entries(t, three), 3)
	}
	// The close of a state leaves it to others.
	again, err := secondary.DB()
	check(t, err)
	check(t, again.Close())
	_, err = again.Keyspace("main")
	is(t, err, windrow.ErrClosed)
	equal(t, entries(t, three), 3)
	_, err = secondary.CatchUp(expired())
	is(t, err, context.DeadlineExceeded)

	check(t, secondary.Follow(time.Millisecond))
	put(t, main, "e", "5")
	for count := 0; count != 4; {
		state, err := secondary.DB()
		check(t, err)
		count = entries(t, state)
		check(t, state.Close())
	}
	check(t, writer.Close())
	check(t, secondary.Close())
	check(t, secondary.Close())
	_, err = secondary.DB()
	is(t, err, windrow.ErrClosed)
	_, err = secondary.CatchUp(ctx)
	is(t, err, windrow.ErrClosed)
	is(t, secondary.Follow(time.Second), windrow.ErrClosed)
	equal(t, entries(t, two), 2)
	for _, state := range []*windrow.DB{empty, two, three} {
		check(t, state.Close())
	}
}

// Each state has all that was acknowledged before it, and no part of a batch.
func TestAStateIsAPrefixOfTheCommits(t *testing.T) {
	path := t.TempDir()
	writer, err := windrow.Open(path, small())
	check(t, err)
	main := keyspace(t, writer, "main")
	put(t, main, "x", "0", "y", "0")
	secondary, err := windrow.OpenSecondary(path, nil)
	check(t, err)
	var group sync.WaitGroup
	group.Add(1)
	go func() {
		defer group.Done()
		for i := range 1000 {
			var batch windrow.Batch
			number := fmt.Append(nil, i)
			batch.Put(main, []byte("x"), number)
			batch.Put(main, []byte("y"), number)
			if err := writer.Write(&batch); err != nil {
				t.Error(err)
			}
		}
	}()
	before := -1
	for before < 999 {
		state, err := secondary.CatchUp(context.Background())
		check(t, err)
		seen := keyspace(t, state, "main")
		equal(t, get(t, seen, "x"), get(t, seen, "y"))
		var number int
		_, err = fmt.Sscan(get(t, seen, "x"), &number)
		check(t, err)
		if number < before {
			t.Fatalf("%d after %d", number, before)
		}
		before = number
		check(t, state.Close())
	}
	group.Wait()
	check(t, secondary.Close())
	check(t, writer.Close())
}
