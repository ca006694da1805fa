package windrow

/*
#include "callbacks.h"
*/
import "C"

import (
	"iter"
	"runtime/cgo"
	"unsafe"
)

// BulkLoad loads entries whose keys come in strictly ascending order, as one commit that is durable at the return: for many
// entries, it takes far less time than batches. It returns their number. After an error of the iteration nothing is loaded.
//
// The iteration may read any database, for example by [View.Entries]. It must not wait for the background work of this one,
// as [DB.WaitIdle] does: that would wait for the load. A close of the database ends the load with [ErrClosed].
func (keyspace *Keyspace) BulkLoad(entries iter.Seq2[Entry, error]) (uint64, error) {
	return keyspace.load(entries, 0)
}

// BulkLoadUnsorted is as BulkLoad, for entries in any order. They are sorted on disk, with memory bytes of memory. Of
// entries with one key the last counts.
func (keyspace *Keyspace) BulkLoadUnsorted(entries iter.Seq2[Entry, error], memory int) (uint64, error) {
	if memory < 1 {
		return 0, invalid("the memory of a sort is %d bytes", memory)
	}
	return keyspace.load(entries, memory)
}

// A source hands entries from the goroutine of the caller to that of the load, where C asks for them.
type source struct {
	// Closed after the last one. Each has entries as a windrow_go_loaded with its bytes.
	chunks chan []byte
	// Closed if the iteration has failed, or the database is being closed.
	stopped chan struct{}
	closing chan struct{}
}

//export windrowGoNextChunk
func windrowGoNextChunk(state C.uintptr_t, chunk **C.uint8_t, length *C.size_t) C.int32_t {
	source := cgo.Handle(state).Value().(*source)
	select {
	case <-source.stopped:
	case <-source.closing:
	case bytes, ok := <-source.chunks:
		if !ok {
			return C.WINDROW_SOURCE_END
		}
		*chunk, *length = (*C.uint8_t)(C.CBytes(bytes)), C.size_t(len(bytes))
		return C.WINDROW_SOURCE_ENTRY
	}
	return C.WINDROW_GO_FAILED
}

type loaded struct {
	count uint64
	err   error
}

func (keyspace *Keyspace) load(entries iter.Seq2[Entry, error], memory int) (uint64, error) {
	if !keyspace.keyspace.enter() {
		return 0, ErrClosed
	}
	source := &source{make(chan []byte), make(chan struct{}), keyspace.database.closing}
	// The caller's iteration stays in its goroutine, so that its panics do, too.
	ended := make(chan loaded, 1)
	go func() { ended <- keyspace.loadFrom(source, memory) }()
	outcome, err := source.fill(entries, ended)
	if err != nil {
		return 0, err
	}
	if outcome.err != nil && keyspace.database.isClosed.Load() {
		return 0, ErrClosed
	}
	return outcome.count, outcome.err
}

// loadFrom loads what the source hands over, and leaves the keyspace.
func (keyspace *Keyspace) loadFrom(source *source, memory int) loaded {
	defer keyspace.keyspace.leave()
	state := cgo.NewHandle(source)
	defer state.Delete()
	var count C.uint64_t
	failed := C.windrow_go_bulk_load(keyspace.keyspace.pointer, C.uintptr_t(state), C.size_t(memory), &count)
	return loaded{uint64(count), failure(failed)}
}

// fill hands over the entries until their end or that of the load, and waits for the load. The error is that of the
// iteration.
func (source *source) fill(entries iter.Seq2[Entry, error], ended <-chan loaded) (outcome loaded, err error) {
	hasEnded := false
	defer func() {
		// The iteration has failed.
		if !hasEnded {
			close(source.stopped)
			<-ended
		}
	}()
	var chunk []byte
	hand := func() bool {
		select {
		case source.chunks <- chunk:
			chunk = chunk[:0:0]
			return true
		case outcome = <-ended:
			hasEnded = true
			return false
		}
	}
	for entry, err := range entries {
		if err != nil {
			return loaded{}, err
		}
		header := C.windrow_go_loaded{lengths: [2]C.uint64_t{C.uint64_t(len(entry.Key)), C.uint64_t(len(entry.Value))}}
		chunk = append(chunk, unsafe.Slice((*byte)(unsafe.Pointer(&header)), unsafe.Sizeof(header))...)
		chunk = append(append(chunk, entry.Key...), entry.Value...)
		if len(chunk) >= largestChunk && !hand() {
			return outcome, nil
		}
	}
	if len(chunk) > 0 && !hand() {
		return outcome, nil
	}
	close(source.chunks)
	outcome = <-ended
	hasEnded = true
	return outcome, nil
}
