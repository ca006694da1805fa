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
	return walk(func() (handle, error) { return view.cursor(keys) }, forwards, true, readAhead)
}

// Backward are the entries of a range from the last to the first.
func (view *View) Backward(keys Range) iter.Seq2[Entry, error] {
	return walk(func() (handle, error) { return view.cursor(keys) }, backwards, true, readAhead)
}

// Keys are the keys of a range in order. No value is read.
func (view *View) Keys(keys Range) iter.Seq2[[]byte, error] {
	entries := walk(func() (handle, error) { return view.cursor(keys) }, forwards, false, readAhead)
	return func(yield func([]byte, error) bool) {
		entries(func(entry Entry, err error) bool { return yield(entry.Key, err) })
	}
}

// How an iteration moves: first, and then.
type direction struct{ begin, step C.uint32_t }

var (
	forwards  = direction{C.WINDROW_GO_FIRST, C.WINDROW_GO_NEXT}
	backwards = direction{C.WINDROW_GO_LAST, C.WINDROW_GO_PREVIOUS}
)

// How many entries an iteration fetches in one call, at most.
const (
	readAhead = 1024
	// The commit of a transaction depends on what it has read, so it reads no more than the caller sees.
	oneByOne = 1
)

// The bytes of the first chunk of an iteration, and of the largest; an entry that is larger has a chunk of its own.
const firstChunk, largestChunk = 2 << 10, 64 << 10

// The lengths before each entry of a chunk.
const entryHeader = 8

func walk(open func() (handle, error), direction direction, withValues bool, limit int) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		cursor, err := open()
		if err != nil {
			yield(Entry{}, err)
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
			chunk, err := cursor.fetch(move, direction.step, nil, withValues, limit, free)
			for range int(chunk.count) {
				var entry Entry
				entry, free = split(free)
				if !yield(entry, nil) {
					return
				}
			}
			if err != nil {
				yield(Entry{}, err)
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
}

// split takes the first entry off a chunk. Nobody who appends to it writes over the next one.
func split(chunk []byte) (Entry, []byte) {
	key := entryHeader + int(binary.NativeEndian.Uint32(chunk))
	end := key + int(binary.NativeEndian.Uint32(chunk[4:]))
	return Entry{Key: chunk[entryHeader:key:key], Value: chunk[key:end:end]}, chunk[end:]
}
