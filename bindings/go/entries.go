package windrow

/*
#include "calls.h"
*/
import "C"

import (
	"encoding/binary"
	"iter"
)

// Entries are the entries of a range in order, in the state at the begin of the iteration. An error is the last that it
// yields. Entries stay valid. They share memory with those beside them: clone one that is kept for long.
func (view *View) Entries(keys Range) iter.Seq2[Entry, error] {
	return entries(func() (handle, error) { return view.cursor(keys) }, forwards, withValues, readAhead)
}

// Backward are the entries of a range from the last to the first.
func (view *View) Backward(keys Range) iter.Seq2[Entry, error] {
	return entries(func() (handle, error) { return view.cursor(keys) }, backwards, withValues, readAhead)
}

// Keys are the keys of a range in order. No value is read.
func (view *View) Keys(keys Range) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		walk(func() (handle, error) { return view.cursor(keys) }, forwards, 0, readAhead,
			func(entry Entry, _ int, err error) bool { return yield(entry.Key, err) })
	}
}

// How an iteration moves: first, and then.
type direction struct{ begin, step C.uint32_t }

var (
	forwards  = direction{C.WINDROW_GO_FIRST, C.WINDROW_GO_NEXT}
	backwards = direction{C.WINDROW_GO_LAST, C.WINDROW_GO_PREVIOUS}
)

// What an iteration reads of an entry beside its key.
const (
	withValues    = C.WINDROW_GO_VALUES
	withKeyspaces = C.WINDROW_GO_KEYSPACES
)

// How many entries an iteration fetches in one call, at most.
const (
	readAhead = 1024
	// The commit of a transaction depends on what it has read, so it reads no more than the caller sees.
	oneByOne = 1
)

// The bytes of the first chunk of an iteration, and of the largest; an entry that is larger has a chunk of its own.
const firstChunk, largestChunk = 2 << 10, 64 << 10

// What is before each entry of a chunk: two lengths, and the position of its keyspace.
const entryHeader = 12

func entries(open func() (handle, error), direction direction, parts C.uint32_t, limit int) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		walk(open, direction, parts, limit, func(entry Entry, _ int, err error) bool { return yield(entry, err) })
	}
}

// walk yields entries with the positions of their keyspaces.
func walk(open func() (handle, error), direction direction, parts C.uint32_t, limit int,
	yield func(entry Entry, keyspace int, err error) bool) {
	cursor, err := open()
	if err != nil {
		yield(Entry{}, 0, err)
		return
	}
	defer cursor.free()
	var free []byte
	size := firstChunk
	move := direction.begin
	for {
		if len(free) < entryHeader || limit > oneByOne {
			free = make([]byte, size)
			size = min(4*size, largestChunk)
		}
		chunk, err := cursor.fetch(move, direction.step, nil, parts, limit, free)
		for range int(chunk.count) {
			var entry Entry
			var keyspace int
			entry, keyspace, free = split(free)
			if !yield(entry, keyspace, nil) {
				return
			}
		}
		if err != nil {
			yield(Entry{}, 0, err)
			return
		}
		if bool(chunk.has_ended) {
			return
		}
		move = direction.step
		if chunk.needed > 0 {
			move = C.WINDROW_GO_STAY
			if chunk.count == 0 {
				free = nil
				size = max(size, int(chunk.needed))
			}
		}
	}
}

// split takes the first entry off a chunk. Nobody who appends to it writes over the next one.
func split(chunk []byte) (Entry, int, []byte) {
	key := entryHeader + int(binary.NativeEndian.Uint32(chunk))
	end := key + int(binary.NativeEndian.Uint32(chunk[4:]))
	keyspace := int(binary.NativeEndian.Uint32(chunk[8:]))
	return Entry{Key: chunk[entryHeader:key:key], Value: chunk[key:end:end]}, keyspace, chunk[end:]
}
