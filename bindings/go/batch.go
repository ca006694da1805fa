package windrow

/*
#include <stdlib.h>
#cgo noescape windrow_go_batch_write
#cgo nocallback windrow_go_batch_write
#include "calls.h"
*/
import "C"

import (
	"slices"
	"time"
	"unsafe"
)

// Batch has writes to any keyspaces of one database: see [DB.Write]. The zero value is empty. It is memory of Go alone, so
// nobody needs to close it. The write checks its keys and values.
type Batch struct {
	// What BatchFromBytes was given, and the database. The writes come after it.
	start     []byte
	database  *database
	keyspaces []*lease[*C.windrow_keyspace]
	// The writes as a windrow_go_write each, and its bytes.
	writes []byte
	count  int
	// Of the first time to live that is none.
	fault error
}

// Len is the number of writes.
func (batch *Batch) Len() int {
	return batch.count
}

// Clear removes all writes, and keeps the memory.
func (batch *Batch) Clear() {
	clear(batch.keyspaces)
	batch.start, batch.database, batch.fault = nil, nil, nil
	batch.keyspaces, batch.writes, batch.count = batch.keyspaces[:0], batch.writes[:0], 0
}

// Put adds a write that sets the value of key.
func (batch *Batch) Put(keyspace *Keyspace, key, value []byte) {
	batch.add(C.windrow_go_write{what: C.WINDROW_GO_PUT}, keyspace, key, value)
}

// PutWithTTL adds a write that sets the value of key for ttl. The time begins with the call of [DB.Write] or [Batch.Bytes].
// A negative ttl is an error of that call, before the faults of all other writes.
func (batch *Batch) PutWithTTL(keyspace *Keyspace, key, value []byte, ttl time.Duration) {
	lifetime, err := timeToLive(ttl)
	if batch.fault == nil {
		batch.fault = err
	}
	batch.add(C.windrow_go_write{what: C.WINDROW_GO_PUT_WITH_TTL, ttl: lifetime}, keyspace, key, value)
}

// Delete adds a write that removes key.
func (batch *Batch) Delete(keyspace *Keyspace, key []byte) {
	batch.add(C.windrow_go_write{what: C.WINDROW_GO_DELETE}, keyspace, key, nil)
}

// DeleteRange adds a write that removes all keys of a range: those of the keyspace, and those that the batch has set
// before.
func (batch *Batch) DeleteRange(keyspace *Keyspace, keys Range) {
	batch.add(C.windrow_go_write{what: C.WINDROW_GO_DELETE_RANGE}, keyspace, keys.Start, keys.End)
}

// Merge adds a write of an operand, as [Keyspace.Merge] does.
func (batch *Batch) Merge(keyspace *Keyspace, key, operand []byte) {
	batch.add(C.windrow_go_write{what: C.WINDROW_GO_MERGE}, keyspace, key, operand)
}

func (batch *Batch) add(write C.windrow_go_write, keyspace *Keyspace, first, second []byte) {
	position := -1
	// Batches have few keyspaces, and most writes have that of the write before.
	for i := len(batch.keyspaces) - 1; i >= 0 && position < 0; i-- {
		if batch.keyspaces[i] == keyspace.keyspace {
			position = i
		}
	}
	if position < 0 {
		position = len(batch.keyspaces)
		batch.keyspaces = append(batch.keyspaces, keyspace.keyspace)
	}
	write.keyspace = C.uint32_t(position)
	for i, bytes := range [][]byte{first, second} {
		write.lengths[i] = C.uint64_t(len(bytes))
		if bytes != nil {
			write.present[i] = 1
		}
	}
	batch.writes = append(batch.writes, unsafe.Slice((*byte)(unsafe.Pointer(&write)), unsafe.Sizeof(write))...)
	batch.writes = append(append(batch.writes, first...), second...)
	batch.count++
}

func (batch *Batch) write(database *database, keyspaces []*C.windrow_keyspace, durability C.uint32_t) *C.windrow_error {
	start, startLength := data(batch.start), C.size_t(len(batch.start))
	writes, length := data(batch.writes), C.size_t(len(batch.writes))
	if database.calls {
		return C.windrow_go_batch_write_calling(database.pointer, unsafe.SliceData(slices.Clone(keyspaces)), start,
			startLength, writes, length, durability)
	}
	return C.windrow_go_batch_write(database.pointer, unsafe.SliceData(keyspaces), start, startLength, writes, length,
		durability)
}

// Bytes are the writes for another process or a later time: see [DB.BatchFromBytes]. They name the keyspaces.
func (batch *Batch) Bytes() ([]byte, error) {
	var bytes []byte
	err := batch.with(func(made *C.windrow_batch, failed **C.windrow_error) {
		var value *C.windrow_value
		C.windrow_batch_to_bytes(made, &value, failed)
		bytes = copied(C.windrow_value_bytes(value))
		C.windrow_value_free(value)
	})
	return bytes, err
}

// WriteKind is the kind of a [Write].
type WriteKind uint32

const (
	// WritePut sets the value.
	WritePut WriteKind = C.WINDROW_WRITE_PUT
	// WriteDelete removes the key.
	WriteDelete WriteKind = C.WINDROW_WRITE_DELETE
	// WriteMerge adds an operand, which is the value.
	WriteMerge WriteKind = C.WINDROW_WRITE_MERGE
	// WriteDeleteRange removes the key and all keys behind it to before the value; all of them if the value is nil.
	WriteDeleteRange WriteKind = C.WINDROW_WRITE_DELETE_RANGE
)

// Write is a write of a batch or of a change.
type Write struct {
	Keyspace   string
	Kind       WriteKind
	Key, Value []byte
	// ExpiresAt is when a value expires: the zero time for never.
	ExpiresAt time.Time
}

// Writes are the writes of the batch in their order.
func (batch *Batch) Writes() ([]Write, error) {
	var visited []byte
	err := batch.with(func(made *C.windrow_batch, failed **C.windrow_error) {
		var bytes *C.uint8_t
		var length C.size_t
		*failed = C.windrow_go_batch_visit(made, &bytes, &length)
		visited = takenBytes(bytes, length)
	})
	if err != nil {
		return nil, err
	}
	return visitedWrites(visited), nil
}

// takenBytes takes over bytes that C has allocated.
func takenBytes(bytes *C.uint8_t, length C.size_t) []byte {
	defer C.free(unsafe.Pointer(bytes))
	return slices.Clone(unsafe.Slice((*byte)(bytes), length))
}

// visitedWrites are the writes that follow a windrow_go_visited each. They share its memory.
func visitedWrites(visited []byte) (writes []Write) {
	for len(visited) > 0 {
		var header C.windrow_go_visited
		size := copy(unsafe.Slice((*byte)(unsafe.Pointer(&header)), unsafe.Sizeof(header)), visited)
		visited = visited[size:]
		var parts [3][]byte
		for i, length := range header.lengths {
			parts[i], visited = visited[:length:length], visited[length:]
		}
		if header.has_value == 0 {
			parts[2] = nil
		}
		writes = append(writes, Write{Keyspace: string(parts[0]), Kind: WriteKind(header.kind), Key: parts[1],
			Value: parts[2], ExpiresAt: expiry(header.expiry)})
	}
	return writes
}

// with runs a call with the batch as one of C.
func (batch *Batch) with(call func(made *C.windrow_batch, failed **C.windrow_error)) error {
	if batch.fault != nil {
		return batch.fault
	}
	keyspaces, ok := enterAll(batch.keyspaces, nil)
	if !ok {
		return ErrClosed
	}
	defer leaveAll(batch.keyspaces)
	var database *C.windrow_database
	if batch.database != nil {
		batch.database.RLock()
		defer batch.database.RUnlock()
		if database = batch.database.pointer; database == nil {
			return ErrClosed
		}
	}
	var made *C.windrow_batch
	failed := C.windrow_go_batch(database, unsafe.SliceData(keyspaces), data(batch.start), C.size_t(len(batch.start)),
		data(batch.writes), C.size_t(len(batch.writes)), &made)
	if failed == nil {
		call(made, &failed)
	}
	C.windrow_batch_free(made)
	return failure(failed)
}

// BatchFromBytes is the batch that [Batch.Bytes] has made bytes of, perhaps for another database: this one needs keyspaces
// of the same names. More writes may be added.
func (db *DB) BatchFromBytes(bytes []byte) (*Batch, error) {
	batch := &Batch{start: append(make([]byte, 0, len(bytes)+1), bytes...), database: db.handle}
	err := batch.with(func(made *C.windrow_batch, _ **C.windrow_error) {
		batch.count = int(C.windrow_batch_count(made))
	})
	if err != nil {
		return nil, err
	}
	return batch, nil
}
