package windrow

/*
#include "callbacks.h"
*/
import "C"

import (
	"fmt"
	"runtime/cgo"
	"time"
	"unsafe"
)

// MergeOperator is how a keyspace folds operands into values. With a Name alone it is a ready one:
// windrow.add_u64.wrapping, windrow.add_u64.saturating, windrow.add_i64.wrapping, windrow.add_i64.saturating (numbers of 8
// bytes, little-endian), windrow.least, windrow.greatest, windrow.append.2c (the digits are the bytes between two
// operands), windrow.id_set.8 (sets of ids of so many bytes).
//
// The functions run in any goroutine, several at once, any number of times for the same operands: their results depend on
// their arguments only. They make no calls of the database. An error or a panic is an [ErrMerge] of reads of this key, with
// its text, and loses nothing.
type MergeOperator struct {
	// Name has 1 to 255 bytes. The database records it: every later open that reads or folds operands must give an operator
	// of this name.
	Name string
	// Merge returns the value of key after all operands, oldest first, were applied to base, which is nil if there is no
	// value.
	Merge func(key, base []byte, operands [][]byte) ([]byte, error)
	// PartialMerge may be nil. It returns one operand with the effect of all operands, at least two, oldest first, on any
	// base. It is false if there is no such operand.
	PartialMerge func(key []byte, operands [][]byte) ([]byte, bool, error)
}

// CompactionFilter removes or replaces values that compactions come across. The database records nothing of it.
type CompactionFilter struct {
	// Name is for people.
	Name string
	// Decide decides about an entry. It runs in any goroutine, several at once. It may read keyspaces, and makes no other
	// call of the database. After an error or a panic the entry stays.
	Decide func(entry *Candidate) (Decision, error)
}

// Decision is what becomes of an entry: [Keep], [Remove] or the result of [Replace].
type Decision struct {
	code  C.int32_t
	value []byte
}

var (
	// Keep leaves the entry as it is.
	Keep = Decision{code: C.WINDROW_FILTER_KEEP}
	// Remove removes the entry.
	Remove = Decision{code: C.WINDROW_FILTER_REMOVE}
)

// Replace gives the entry another value.
func Replace(value []byte) Decision {
	return Decision{C.WINDROW_FILTER_REPLACE, value}
}

// Candidate is an entry about which a [CompactionFilter] decides. It is valid during the call.
type Candidate struct {
	// Nil after the call.
	pointer *C.windrow_candidate
}

// Key is the key of the entry.
func (entry *Candidate) Key() []byte {
	return borrowed(C.windrow_candidate_key(entry.pointer))
}

// ValueLength is the number of bytes of the value, without a read of it.
func (entry *Candidate) ValueLength() uint64 {
	return uint64(C.windrow_candidate_value_length(entry.pointer))
}

// ExpiresAt is when the entry expires: the zero time for never.
func (entry *Candidate) ExpiresAt() time.Time {
	return expiry(C.windrow_candidate_expires_at(entry.pointer))
}

// Value is the value, which may be in another file.
func (entry *Candidate) Value() ([]byte, error) {
	var value C.windrow_bytes
	var failed *C.windrow_error
	C.windrow_candidate_value(entry.pointer, &value, &failed)
	return borrowed(value), failure(failed)
}

// haveCalls says whether C may call functions of Go.
func (options *Options) haveCalls() bool {
	if options == nil {
		return false
	}
	for _, operator := range options.MergeOperators {
		if operator.Merge != nil {
			return true
		}
	}
	return len(options.CompactionFilters) > 0
}

// set gives the operator to a keyspace.
func (operator MergeOperator) set(options *C.windrow_options, keyspace string) error {
	return withTexts(keyspace, operator.Name, func(keyspace, name *C.char, failed **C.windrow_error) {
		if operator.Merge == nil {
			C.windrow_options_set_merge_operator(options, keyspace, name, failed)
		} else {
			*failed = C.windrow_go_set_merge_operator(options, keyspace, name, C.bool(operator.PartialMerge != nil),
				C.uintptr_t(cgo.NewHandle(&operator)))
		}
	})
}

// set gives the filter to a keyspace.
func (filter CompactionFilter) set(options *C.windrow_options, keyspace string) error {
	if filter.Decide == nil {
		return invalid("the compaction filter of the keyspace %q has no function", keyspace)
	}
	return withTexts(keyspace, filter.Name, func(keyspace, name *C.char, failed **C.windrow_error) {
		*failed = C.windrow_go_set_compaction_filter(options, keyspace, name, C.uintptr_t(cgo.NewHandle(&filter)))
	})
}

// stopPanic keeps a panic from C, which cannot pass it on.
func stopPanic(sink *C.windrow_sink, code *C.int32_t) {
	if panicked := recover(); panicked != nil {
		*code = fail(sink, fmt.Errorf("a panic: %v", panicked))
	}
}

// fail is the result of a function that has failed.
func fail(sink *C.windrow_sink, err error) C.int32_t {
	C.windrow_sink_fail(sink, lend([]byte(err.Error())))
	return C.WINDROW_GO_FAILED
}

// give appends the result of a function.
func give(sink *C.windrow_sink, result []byte) {
	C.windrow_sink_append(sink, lend(result))
}

// borrowedAll are the operands that C lends.
func borrowedAll(operands *C.windrow_bytes, count C.size_t) [][]byte {
	all := make([][]byte, count)
	for i, operand := range unsafe.Slice(operands, count) {
		all[i] = borrowed(operand)
	}
	return all
}

//export windrowGoFullMerge
func windrowGoFullMerge(state C.uintptr_t, key, base C.windrow_bytes, operands *C.windrow_bytes, count C.size_t,
	result *C.windrow_sink) (code C.int32_t) {
	defer stopPanic(result, &code)
	operator := cgo.Handle(state).Value().(*MergeOperator)
	merged, err := operator.Merge(borrowed(key), borrowed(base), borrowedAll(operands, count))
	if err != nil {
		return fail(result, err)
	}
	give(result, merged)
	return C.WINDROW_MERGE_DONE
}

//export windrowGoPartialMerge
func windrowGoPartialMerge(state C.uintptr_t, key C.windrow_bytes, operands *C.windrow_bytes, count C.size_t,
	result *C.windrow_sink) (code C.int32_t) {
	defer stopPanic(result, &code)
	operator := cgo.Handle(state).Value().(*MergeOperator)
	merged, ok, err := operator.PartialMerge(borrowed(key), borrowedAll(operands, count))
	if err != nil {
		return fail(result, err)
	}
	if !ok {
		return C.WINDROW_MERGE_NOT
	}
	give(result, merged)
	return C.WINDROW_MERGE_DONE
}

//export windrowGoDecide
func windrowGoDecide(state C.uintptr_t, pointer *C.windrow_candidate, replacement *C.windrow_sink) (code C.int32_t) {
	entry := &Candidate{pointer}
	defer func() { entry.pointer = nil }()
	defer stopPanic(replacement, &code)
	filter := cgo.Handle(state).Value().(*CompactionFilter)
	decision, err := filter.Decide(entry)
	if err != nil {
		return fail(replacement, err)
	}
	give(replacement, decision.value)
	return decision.code
}

//export windrowGoRelease
func windrowGoRelease(state C.uintptr_t) {
	cgo.Handle(state).Delete()
}
