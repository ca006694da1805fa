package windrow_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	windrow "github.com/windrow-db/windrow/bindings/go"
)

// describe has a change as text.
func describe(change *windrow.Change) string {
	text := fmt.Sprintf("%d%v", change.Kind, change.Keyspaces)
	for _, write := range change.Writes {
		text += fmt.Sprintf(" %s:%d:%s=%s", write.Keyspace, write.Kind, write.Key, write.Value)
		if write.Kind == windrow.WriteDeleteRange && write.Value == nil {
			text += "..."
		}
		if !write.ExpiresAt.IsZero() {
			text += "!"
		}
	}
	return text
}

// present are the changes that there are, as text.
func present(t *testing.T, changes *windrow.Changes) []string {
	t.Helper()
	var found []string
	for change, err := range changes.Present() {
		check(t, err)
		found = append(found, describe(change))
	}
	return found
}

// consuming opens a consumer and its changes.
func consuming(t *testing.T, db *windrow.DB, name string) (*windrow.Consumer, *windrow.Changes) {
	t.Helper()
	consumer, err := db.Consumer(name)
	check(t, err)
	changes, err := consumer.Changes()
	check(t, err)
	return consumer, changes
}

func expect(t *testing.T, found []string, expected ...string) {
	t.Helper()
	equal(t, strings.Join(found, "\n"), strings.Join(expected, "\n"))
}

// newest is the sequence number of the newest write.
func newest(t *testing.T, db *windrow.DB) uint64 {
	t.Helper()
	snapshot, err := db.Snapshot()
	check(t, err)
	defer snapshot.Close()
	return snapshot.Sequence()
}

func TestChangesComeOnceInTheOrderOfTheCommits(t *testing.T) {
	db, main := opened(t, merging("lists", windrow.MergeOperator{Name: "windrow.append.2c"}))
	lists := keyspace(t, db, "lists")
	consumer, changes := consuming(t, db, "copy")
	equal(t, consumer.Name(), "copy")
	expect(t, present(t, changes))
	put(t, main, "a", "1")
	var batch windrow.Batch
	batch.Put(main, []byte("b"), []byte("2"))
	batch.PutWithTTL(main, []byte("c"), []byte("3"), time.Hour)
	batch.Delete(main, []byte("a"))
	batch.Merge(lists, []byte("d"), []byte("4"))
	batch.DeleteRange(main, windrow.Range{Start: []byte("e"), End: []byte("f")})
	batch.DeleteRange(main, windrow.Range{Start: []byte("g")})
	check(t, db.Write(&batch))
	other := keyspace(t, db, "other")
	check(t, other.Rename("another"))
	put(t, keyspace(t, db, "another"), "h", "5")
	_, err := other.BulkLoad(numbers(0, 3))
	check(t, err)
	large := strings.Repeat("x", 10_000)
	put(t, main, "large", large)
	expected := []string{
		"1[] main:0:a=1",
		"1[] main:0:b=2 main:0:c=3! main:1:a= lists:2:d=4 main:3:e=f main:3:g=...",
		"2[other]",
		"4[other another]",
		"1[] another:0:h=5",
		"5[another]",
		"1[] main:0:large=" + large,
	}
	expect(t, present(t, changes), expected...)
	expect(t, present(t, changes))

	// A feed of its own begins where its caller says, and within a batch with the whole batch.
	again, err := consumer.Changes()
	check(t, err)
	var batchAt uint64
	for change, err := range again.Present() {
		check(t, err)
		if len(change.Writes) == 6 {
			batchAt = change.FirstSequence
			equal(t, change.Sequence, batchAt+5)
			break
		}
	}
	expect(t, present(t, again), expected[2:]...)
	from, err := db.Changes(batchAt + 3)
	check(t, err)
	expect(t, present(t, from), expected[1:]...)
	_, err = db.Changes(newest(t, db) + 2)
	is(t, err, windrow.ErrInvalidArgument)
	check(t, db.DropKeyspace("another"))
	expect(t, present(t, changes), "3[another]")
	for _, changes := range []*windrow.Changes{changes, again, from} {
		check(t, changes.Close())
		check(t, changes.Close())
	}
	check(t, consumer.Close())
}

// change makes write i of a writer.
func change(keyspace *windrow.Keyspace, writer, i int) error {
	key := []byte(fmt.Sprint(i % 50))
	switch (i + writer) % 5 {
	case 0:
		return keyspace.Delete(key)
	case 1:
		return keyspace.DeleteRange(windrow.Prefix(key))
	default:
		return keyspace.Put(key, fmt.Append(nil, writer, i))
	}
}

// What a feed gives out makes another database equal.
func TestChangesAsBytesMakeACopy(t *testing.T) {
	ctx := context.Background()
	db, main := opened(t, nil)
	_, changes := consuming(t, db, "copy")
	copied, theirs := opened(t, nil)
	next := newest(t, db) + 1
	var group sync.WaitGroup
	for writer := range 4 {
		group.Add(1)
		go func() {
			defer group.Done()
			for i := range 200 {
				if err := change(main, writer, i); err != nil {
					t.Error(err)
				}
			}
		}()
	}
	go func() {
		group.Wait()
		if err := main.PutWithTTL([]byte("last"), []byte("one"), time.Hour); err != nil {
			t.Error(err)
		}
	}()
	var before *windrow.Change
	for change, err := range changes.Follow(ctx) {
		check(t, err)
		equal(t, change.FirstSequence, next)
		next = change.Sequence + 1
		bytes, err := change.Bytes()
		check(t, err)
		batch, err := copied.BatchFromBytes(bytes)
		check(t, err)
		equal(t, batch.Len(), len(change.Writes))
		check(t, copied.Write(batch))
		if before != nil {
			_, err = before.Bytes()
			is(t, err, windrow.ErrInvalidArgument)
		}
		before = change
		if string(change.Writes[len(change.Writes)-1].Key) == "last" {
			break
		}
	}
	equal(t, next, newest(t, db)+1)
	equal(t, text(t, theirs.Entries(windrow.All)), text(t, main.Entries(windrow.All)))
	ours, err := main.ExpiresAt([]byte("last"))
	check(t, err)
	expiry, err := theirs.ExpiresAt([]byte("last"))
	check(t, err)
	equal(t, expiry, ours)
	keyspace(t, db, "created")
	created, err := changes.Next(ctx)
	check(t, err)
	_, err = created.Bytes()
	is(t, err, windrow.ErrInvalidArgument)
	check(t, changes.Close())
}

func TestAFeedWaitsForChangesAndEndsWithItsContext(t *testing.T) {
	db, main := opened(t, nil)
	changes, err := db.Changes(newest(t, db) + 1)
	check(t, err)
	for range 2 {
		ctx, cancel := context.WithTimeout(context.Background(), time.Millisecond)
		_, err = changes.Next(ctx)
		is(t, err, context.DeadlineExceeded)
		cancel()
	}
	// The context ends when the goroutine has read all that it waits for.
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		for i := range 5 {
			if err := main.Put(fmt.Append(nil, i), nil); err != nil {
				t.Error(err)
			}
		}
	}()
	var followed []string
	for change, err := range changes.Follow(ctx) {
		if err != nil {
			is(t, err, context.Canceled)
			break
		}
		followed = append(followed, describe(change))
		if len(followed) == 5 {
			time.AfterFunc(time.Millisecond, cancel)
		}
	}
	expect(t, followed, "1[] main:0:0=", "1[] main:0:1=", "1[] main:0:2=", "1[] main:0:3=", "1[] main:0:4=")
}

func TestAConsumerGoesOnAfterAnOpen(t *testing.T) {
	path := t.TempDir()
	open := func() (*windrow.DB, *windrow.Keyspace) {
		db, err := windrow.Open(path, &windrow.Options{Keyspace: &windrow.KeyspaceOptions{MemtableBytes: 64 << 10}})
		check(t, err)
		return db, keyspace(t, db, "main")
	}
	db, main := open()
	consumer, changes := consuming(t, db, "copy")
	expected := 0
	read := func(limit int) (last uint64) {
		for change, err := range changes.Present() {
			check(t, err)
			for _, write := range change.Writes {
				equal(t, string(write.Key), fmt.Sprintf("%06d", expected))
				expected++
			}
			if last = change.Sequence; expected >= limit {
				break
			}
		}
		return last
	}
	for i := range 3000 {
		put(t, main, fmt.Sprintf("%06d", i), strings.Repeat("v", 100))
	}
	check(t, db.Flush(context.Background()))
	place := read(1000)
	equal(t, expected, 1000)
	check(t, consumer.Acknowledge(place))
	read(2000)
	check(t, db.Close())

	// What was not acknowledged comes again.
	db, _ = open()
	defer func() { check(t, db.Close()) }()
	consumers, err := db.Consumers()
	check(t, err)
	equal(t, len(consumers), 1)
	equal(t, consumers[0].Name, "copy")
	equal(t, consumers[0].Acknowledged, place)
	equal(t, consumers[0].IsBehind, false)
	if consumers[0].HeldBytes == 0 {
		t.Error("the consumer holds nothing")
	}
	consumer, changes = consuming(t, db, "copy")
	acknowledged, err := consumer.Acknowledged()
	check(t, err)
	equal(t, acknowledged, place)
	expected = 1000
	last := read(3000)
	equal(t, expected, 3000)
	is(t, consumer.Acknowledge(last+1000), windrow.ErrInvalidArgument)
	check(t, consumer.Acknowledge(last))
	_, err = changes.Next(expired())
	is(t, err, context.DeadlineExceeded)
	check(t, db.RemoveConsumer("copy"))
	is(t, db.RemoveConsumer("copy"), windrow.ErrNotFound)
	is(t, consumer.Acknowledge(last), windrow.ErrNotFound)
	_, err = db.Consumer("")
	is(t, err, windrow.ErrInvalidArgument)
}

// expired is a context that has ended.
func expired() context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 0)
	defer cancel()
	return ctx
}

// A consumer that holds too much falls behind. It begins again with a copy of a snapshot.
func TestAConsumerFallsBehindAndBeginsAgain(t *testing.T) {
	behind := make(chan windrow.Event, 1000)
	db, main := opened(t, &windrow.Options{ChangeRetentionBytes: 200 << 10, ChangeRetentionIdle: time.Hour,
		Keyspace: &windrow.KeyspaceOptions{MemtableBytes: 64 << 10},
		Listener: func(event windrow.Event) {
			if event.Name == "consumer_fell_behind" {
				behind <- event
			}
		}})
	consumer, changes := consuming(t, db, "copy")
	isBehind := func(err error) {
		t.Helper()
		is(t, err, windrow.ErrFellBehind)
		if !strings.Contains(err.Error(), "snapshot") {
			t.Error(err)
		}
	}
	for fellBehind := false; !fellBehind; {
		for i := range 300 {
			put(t, main, fmt.Sprint(i), strings.Repeat("v", 200))
		}
		check(t, db.Flush(context.Background()))
		consumers, err := db.Consumers()
		check(t, err)
		fellBehind = consumers[0].IsBehind
	}
	if event := <-behind; !strings.Contains(string(event.JSON), "copy") {
		t.Error(string(event.JSON))
	}
	_, err := changes.Next(context.Background())
	isBehind(err)
	pairs := 0
	for change, err := range changes.Present() {
		equal(t, change, nil)
		isBehind(err)
		pairs++
	}
	equal(t, pairs, 1)
	_, err = consumer.Changes()
	isBehind(err)
	isBehind(consumer.Acknowledge(1))
	_, err = db.Changes(1)
	isBehind(err)

	check(t, db.RemoveConsumer("copy"))
	consumer, changes = consuming(t, db, "copy")
	put(t, main, "before", "1")
	snapshot, err := db.Snapshot()
	check(t, err)
	defer snapshot.Close()
	copied := map[string]string{}
	for entry, err := range main.At(snapshot).Entries(windrow.All) {
		check(t, err)
		copied[string(entry.Key)] = string(entry.Value)
	}
	put(t, main, "after", "2")
	applied := 0
	for change, err := range changes.Present() {
		check(t, err)
		if change.Sequence <= snapshot.Sequence() {
			continue
		}
		for _, write := range change.Writes {
			copied[string(write.Key)] = string(write.Value)
			applied++
		}
		check(t, consumer.Acknowledge(change.Sequence))
	}
	equal(t, applied, 1)
	found := ""
	for _, key := range slices.Sorted(maps.Keys(copied)) {
		found += key + "=" + copied[key] + " "
	}
	equal(t, found, text(t, main.Entries(windrow.All)))
}

// A close ends a wait, of the feed or of its database.
func TestACloseEndsAWait(t *testing.T) {
	for round := range 8 {
		db, err := windrow.Open(t.TempDir(), nil)
		check(t, err)
		_, changes := consuming(t, db, "copy")
		ended := make(chan error)
		go func() {
			for _, err := range changes.Follow(context.Background()) {
				if err != nil {
					ended <- err
				}
			}
		}()
		keyspace(t, db, "main")
		time.Sleep(time.Duration(round) * time.Millisecond)
		if round%2 == 0 {
			check(t, changes.Close())
		} else {
			check(t, db.Close())
		}
		if err := <-ended; !errors.Is(err, windrow.ErrClosed) {
			t.Error(err)
		}
		check(t, db.Close())
		_, err = changes.Next(context.Background())
		is(t, err, windrow.ErrClosed)
	}
}
