package windrow

/*
#cgo noescape windrow_go_batch_write
#cgo nocallback windrow_go_batch_write
#include "calls.h"
*/
import "C"

import "unsafe"

// Batch has writes to any keyspaces of one database: see [DB.Write]. The zero value is empty. It is memory of Go alone, so
// nobody needs to close it. The write checks its keys and values.
type Batch struct {
	keyspaces []*lease[*C.windrow_keyspace]
	// The writes as a windrow_go_write each, and its bytes.
	writes []byte
	count  int
}

// Len is the number of writes.
func (batch *Batch) Len() int {
	return batch.count
}

// Clear removes all writes, and keeps the memory.
func (batch *Batch) Clear() {
	clear(batch.keyspaces)
	batch.keyspaces, batch.writes, batch.count = batch.keyspaces[:0], batch.writes[:0], 0
}

// Put adds a write that sets the value of key.
func (batch *Batch) Put(keyspace *Keyspace, key, value []byte) {
	batch.add(C.WINDROW_GO_PUT, keyspace, key, value)
}

// Delete adds a write that removes key.
func (batch *Batch) Delete(keyspace *Keyspace, key []byte) {
	batch.add(C.WINDROW_GO_DELETE, keyspace, key, nil)
}

// DeleteRange adds a write that removes all keys of a range: those of the keyspace, and those that the batch has set
// before.
func (batch *Batch) DeleteRange(keyspace *Keyspace, keys Range) {
	batch.add(C.WINDROW_GO_DELETE_RANGE, keyspace, keys.Start, keys.End)
}

// Merge adds a write of an operand, as [Keyspace.Merge] does.
func (batch *Batch) Merge(keyspace *Keyspace, key, operand []byte) {
	batch.add(C.WINDROW_GO_MERGE, keyspace, key, operand)
}

func (batch *Batch) add(what C.uint32_t, keyspace *Keyspace, first, second []byte) {
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
	write := C.windrow_go_write{what: what, keyspace: C.uint32_t(position)}
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

func (batch *Batch) write(database *C.windrow_database, keyspaces []*C.windrow_keyspace,
	durability C.uint32_t) *C.windrow_error {
	return C.windrow_go_batch_write(database, unsafe.SliceData(keyspaces), data(batch.writes),
		C.size_t(len(batch.writes)), durability)
}
