package windrow

/*
#include "calls.h"
*/
import "C"

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"iter"
	"runtime"
	"sync"
	"time"
)

// ChangeKind is the kind of a [Change].
type ChangeKind uint32

const (
	// BatchCommitted: Writes were committed together.
	BatchCommitted ChangeKind = C.WINDROW_CHANGE_BATCH
	// KeyspaceCreated: Keyspaces has the name of the keyspace.
	KeyspaceCreated ChangeKind = C.WINDROW_CHANGE_KEYSPACE_CREATED
	// KeyspaceDropped: Keyspaces has the last name of the keyspace. All that earlier batches have written to it is gone, too.
	KeyspaceDropped ChangeKind = C.WINDROW_CHANGE_KEYSPACE_DROPPED
	// KeyspaceRenamed: Keyspaces has the old and the new name. If another keyspace had the new one, that one has the old name
	// now.
	KeyspaceRenamed ChangeKind = C.WINDROW_CHANGE_KEYSPACE_RENAMED
	// TablesAdded: a bulk load or an ingestion has added tables to Keyspaces. Their entries are in no change: copy these
	// keyspaces from a snapshot, and go on behind it. There are none if no consumer holds the change: then they are not
	// known, or the load has failed.
	TablesAdded ChangeKind = C.WINDROW_CHANGE_TABLES_ADDED
)

// Change is one change of a database.
type Change struct {
	Kind ChangeKind
	// Sequence is the sequence number of the change; of a batch, that of its last write. A consumer that has done with the
	// change acknowledges it.
	Sequence uint64
	// FirstSequence is that of the first write of a batch, and Sequence for other changes.
	FirstSequence uint64
	// Writes of a batch in their order, with the names that the keyspaces had then. Those to keyspaces that were dropped
	// since are left out.
	Writes []Write
	// Keyspaces are what a change is about that is no batch.
	Keyspaces []string
	feed      *feed
}

// Changes are the changes of a database in the order of the commits: each comes once, when readers can see it and it is
// durable. Goroutines that share them take turns. Close them.
type Changes struct {
	feed    *feed
	cleanup runtime.Cleanup
}

// A feed is the handle of C, which one call at a time has. It refers to no Changes, so that their cleanup can have it.
type feed struct {
	sync.Mutex
	// Nil after the close.
	pointer *C.windrow_changes
	// The last change that was given out, in Go and in C.
	last        *Change
	lastPointer *C.windrow_change
}

// newChanges opens a feed.
func newChanges(open func(changes **C.windrow_changes) error) (*Changes, error) {
	var pointer *C.windrow_changes
	if err := open(&pointer); err != nil {
		return nil, err
	}
	changes := &Changes{feed: &feed{pointer: pointer}}
	changes.cleanup = runtime.AddCleanup(changes, (*feed).free, changes.feed)
	return changes, nil
}

// forget frees the last change. The caller has the lock.
func (feed *feed) forget() {
	C.windrow_change_free(feed.lastPointer)
	feed.last, feed.lastPointer = nil, nil
}

func (feed *feed) free() {
	feed.Lock()
	defer feed.Unlock()
	feed.forget()
	C.windrow_changes_free(feed.pointer)
	feed.pointer = nil
}

// next waits for the next change. It is nil if there was none in time.
func (feed *feed) next(timeout time.Duration) (*Change, error) {
	feed.Lock()
	defer feed.Unlock()
	if feed.pointer == nil {
		return nil, ErrClosed
	}
	found := C.windrow_go_next_change(feed.pointer, milliseconds(timeout))
	writes, keyspaces := takenBytes(found.writes, found.writes_length), takenBytes(found.keyspaces, found.keyspaces_length)
	if err := failure(found.error); err != nil || found.change == nil {
		C.windrow_change_free(found.change)
		return nil, err
	}
	feed.forget()
	change := &Change{Kind: ChangeKind(found.kind), Sequence: uint64(found.sequence),
		FirstSequence: uint64(found.first_sequence), Writes: visitedWrites(writes), feed: feed}
	for len(keyspaces) > 0 {
		length := binary.NativeEndian.Uint64(keyspaces)
		change.Keyspaces = append(change.Keyspaces, string(keyspaces[8:8+length]))
		keyspaces = keyspaces[8+length:]
	}
	feed.last, feed.lastPointer = change, found.change
	return change, nil
}

// Bytes are the writes of a batch for another database: see [DB.BatchFromBytes]. The feed has them until it gives out its
// next change, or is closed.
func (change *Change) Bytes() ([]byte, error) {
	feed := change.feed
	feed.Lock()
	defer feed.Unlock()
	if feed.last != change {
		return nil, invalid("the feed has gone on from the change %d", change.Sequence)
	}
	var value *C.windrow_value
	var failed *C.windrow_error
	C.windrow_change_to_bytes(feed.lastPointer, &value, &failed)
	defer C.windrow_value_free(value)
	return copied(C.windrow_value_bytes(value)), failure(failed)
}

// Changes returns the changes from sequence number from on. The first batch may begin before. Nothing is kept for them:
// [ErrFellBehind] says that they are gone. [DB.Consumer] keeps changes.
func (db *DB) Changes(from uint64) (*Changes, error) {
	return newChanges(func(changes **C.windrow_changes) error {
		return db.with(func(database *C.windrow_database, failed **C.windrow_error) {
			C.windrow_changes_open(database, C.uint64_t(from), changes, failed)
		})
	})
}

// Close frees what the feed has. A call that waits ends with [ErrClosed], and so do later ones.
func (changes *Changes) Close() error {
	changes.cleanup.Stop()
	changes.feed.free()
	return nil
}

// How long one call of C waits. A context that ends, or a close, ends the wait after that time at the latest.
const feedWait = 50 * time.Millisecond

// Next waits for the next change. If ctx ends first, its error is returned, and nothing is lost. After another error the next
// call tries the same change again, except after [ErrUnsupported]: a write of the change is newer than this package, and the
// feed goes on behind it. Who may not miss it begins anew at the place of its consumer, with a newer package. [ErrFellBehind]:
// the change is not kept any more, or the consumer of the feed has acknowledged it already.
func (changes *Changes) Next(ctx context.Context) (*Change, error) {
	defer runtime.KeepAlive(changes)
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		change, err := changes.feed.next(feedWait)
		if change != nil || err != nil {
			return change, err
		}
	}
}

// Present gives out the changes that there are, and does not wait for more. An error is the last of its pairs.
func (changes *Changes) Present() iter.Seq2[*Change, error] {
	return changes.each(func() (*Change, error) { return changes.feed.next(0) })
}

// Follow gives out the changes, and waits for more until ctx ends. Its last pair has the error, that of ctx, too.
func (changes *Changes) Follow(ctx context.Context) iter.Seq2[*Change, error] {
	return changes.each(func() (*Change, error) { return changes.Next(ctx) })
}

func (changes *Changes) each(next func() (*Change, error)) iter.Seq2[*Change, error] {
	return func(yield func(*Change, error) bool) {
		defer runtime.KeepAlive(changes)
		for {
			change, err := next()
			if change == nil && err == nil {
				return
			}
			if !yield(change, err) || err != nil {
				return
			}
		}
	}
}

// Consumer is a named consumer of the changes of a database, whose place survives. The database keeps every change behind
// it, within the bounds of the [Options]. Any number of goroutines may use it. Close it; the consumer stays.
type Consumer struct {
	name     string
	database *database
	handle   *lease[*C.windrow_consumer]
}

// Consumer opens the consumer name, or creates it. A new one begins behind the newest write, and is durable at the return: a
// snapshot that is taken afterwards has everything before its changes.
func (db *DB) Consumer(name string) (*Consumer, error) {
	var pointer *C.windrow_consumer
	err := db.withText(name, func(database *C.windrow_database, name *C.char, failed **C.windrow_error) {
		C.windrow_consumer_open(database, name, &pointer, failed)
	})
	if err != nil {
		return nil, err
	}
	free := func(pointer *C.windrow_consumer) { C.windrow_consumer_free(pointer) }
	return &Consumer{name, db.handle, newLease(pointer, free)}, nil
}

// Name is the name of the consumer.
func (consumer *Consumer) Name() string {
	return consumer.name
}

// with runs a call with the handle.
func (consumer *Consumer) with(call func(consumer *C.windrow_consumer, failed **C.windrow_error)) error {
	if !consumer.handle.enter() {
		return ErrClosed
	}
	defer consumer.handle.leave()
	if consumer.database.isClosed.Load() {
		return ErrClosed
	}
	var failed *C.windrow_error
	call(consumer.handle.pointer, &failed)
	return failure(failed)
}

// Changes returns the changes behind the place of the consumer. [ErrFellBehind]: it held too much, or was silent for too long.
// Then remove it and create it anew, copy a snapshot, and go on with the changes behind that.
func (consumer *Consumer) Changes() (*Changes, error) {
	return newChanges(func(changes **C.windrow_changes) error {
		return consumer.with(func(consumer *C.windrow_consumer, failed **C.windrow_error) {
			C.windrow_consumer_changes(consumer, changes, failed)
		})
	})
}

// Acknowledged is the place of the consumer: it has done with every change up to this sequence number.
func (consumer *Consumer) Acknowledged() (uint64, error) {
	var sequence C.uint64_t
	err := consumer.with(func(consumer *C.windrow_consumer, failed **C.windrow_error) {
		C.windrow_consumer_acknowledged(consumer, &sequence, failed)
	})
	return uint64(sequence), err
}

// Acknowledge notes that the consumer has done with every change up to sequence. The place is durable at the return. It costs
// two syncs of the disk, so acknowledge after many changes.
func (consumer *Consumer) Acknowledge(sequence uint64) error {
	return consumer.with(func(consumer *C.windrow_consumer, failed **C.windrow_error) {
		C.windrow_consumer_acknowledge(consumer, C.uint64_t(sequence), failed)
	})
}

// Close frees the handle. The consumer stays, and so do its feeds.
func (consumer *Consumer) Close() error {
	consumer.handle.close()
	return nil
}

// ConsumerStats say what a consumer holds.
type ConsumerStats struct {
	Name string `json:"name"`
	// Acknowledged is its place.
	Acknowledged uint64 `json:"acknowledged"`
	// IsBehind says that it has fallen behind: it holds nothing, and changes behind its place may be gone.
	IsBehind bool `json:"is_behind"`
	// HeldBytes on disk are there for consumers alone.
	HeldBytes uint64 `json:"held_bytes"`
}

// Consumers returns all consumers, by name.
func (db *DB) Consumers() ([]ConsumerStats, error) {
	var text *C.char
	err := db.with(func(database *C.windrow_database, failed **C.windrow_error) {
		C.windrow_consumers_json(database, &text, failed)
	})
	if err != nil {
		return nil, err
	}
	var consumers []ConsumerStats
	err = json.Unmarshal(taken(text), &consumers)
	return consumers, err
}

// RemoveConsumer forgets the consumer name. What nobody else holds is removed.
func (db *DB) RemoveConsumer(name string) error {
	return db.withText(name, func(database *C.windrow_database, name *C.char, failed **C.windrow_error) {
		C.windrow_consumer_remove(database, name, failed)
	})
}
