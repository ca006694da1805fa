package windrow

/*
#cgo noescape windrow_go_get
#cgo nocallback windrow_go_get
#cgo noescape windrow_go_put
#cgo nocallback windrow_go_put
#cgo noescape windrow_go_delete
#cgo nocallback windrow_go_delete
#include "calls.h"
*/
import "C"

import (
	"bytes"
	"context"
	"maps"
	"slices"
	"sync"
	"time"
	"unsafe"
	"weak"
)

// View reads a keyspace: in the newest state, or in that of a snapshot.
type View struct {
	database *database
	keyspace *lease[*C.windrow_keyspace]
	// Nil for the newest state.
	snapshot *lease[*C.windrow_snapshot]
}

// Keyspace maps keys to values. Its View is that of the newest state.
type Keyspace struct {
	View
}

func newKeyspace(database *database, pointer *C.windrow_keyspace) *Keyspace {
	handle := newLease(pointer, database.keyspaces.free)
	database.keyspaces.add(handle)
	return &Keyspace{View{database: database, keyspace: handle}}
}

// keyspaces are those of a database. It does not keep them from the garbage collector.
type keyspaces struct {
	sync.Mutex
	open map[*C.windrow_keyspace]weak.Pointer[lease[*C.windrow_keyspace]]
}

func (keyspaces *keyspaces) add(keyspace *lease[*C.windrow_keyspace]) {
	keyspaces.Lock()
	defer keyspaces.Unlock()
	if keyspaces.open == nil {
		keyspaces.open = map[*C.windrow_keyspace]weak.Pointer[lease[*C.windrow_keyspace]]{}
	}
	keyspaces.open[keyspace.pointer] = weak.Make(keyspace)
}

func (keyspaces *keyspaces) free(pointer *C.windrow_keyspace) {
	keyspaces.Lock()
	delete(keyspaces.open, pointer)
	keyspaces.Unlock()
	C.windrow_keyspace_free(pointer)
}

// close closes all of them.
func (keyspaces *keyspaces) close() {
	keyspaces.Lock()
	open := slices.Collect(maps.Values(keyspaces.open))
	keyspaces.Unlock()
	for _, keyspace := range open {
		if keyspace := keyspace.Value(); keyspace != nil {
			keyspace.close()
		}
	}
}

// Close releases the keyspace before the garbage collector does. Iterations and cursors that have begun go on.
func (keyspace *Keyspace) Close() error {
	keyspace.keyspace.close()
	return nil
}

// At is a view of the keyspace in the state of the snapshot.
func (keyspace *Keyspace) At(snapshot *Snapshot) *View {
	return &View{database: keyspace.database, keyspace: keyspace.keyspace, snapshot: snapshot.handle}
}

// enter takes the handles for a call, which ends with leave.
func (view *View) enter() (*C.windrow_keyspace, *C.windrow_snapshot, bool) {
	if !view.keyspace.enter() {
		return nil, nil, false
	}
	if view.snapshot == nil {
		return view.keyspace.pointer, nil, true
	}
	if !view.snapshot.enter() {
		view.keyspace.leave()
		return nil, nil, false
	}
	return view.keyspace.pointer, view.snapshot.pointer, true
}

func (view *View) leave() {
	view.keyspace.leave()
	if view.snapshot != nil {
		view.snapshot.leave()
	}
}

// Values up to this size come back in the call that finds them.
const smallValue = 512

// Get returns the value of key, or [ErrKeyNotFound].
func (view *View) Get(key []byte) ([]byte, error) {
	keyspace, snapshot, ok := view.enter()
	if !ok {
		return nil, ErrClosed
	}
	if view.database.calls {
		key, buffer := bytes.Clone(key), make([]byte, smallValue)
		found := C.windrow_go_get_calling(keyspace, snapshot, data(key), C.size_t(len(key)), data(buffer), smallValue)
		view.leave()
		return valueOf(found, buffer)
	}
	var buffer [smallValue]byte
	found := C.windrow_go_get(keyspace, snapshot, data(key), C.size_t(len(key)), data(buffer[:]), smallValue)
	view.leave()
	return valueOf(found, buffer[:])
}

// valueOf takes over what a read has found, in the buffer or not.
func valueOf(found C.windrow_go_found, buffer []byte) ([]byte, error) {
	if found.error != nil {
		return nil, failure(found.error)
	}
	if !found.exists {
		return nil, ErrKeyNotFound
	}
	if found.value != nil {
		defer C.windrow_value_free(found.value)
		return copied(found.bytes), nil
	}
	value := make([]byte, found.bytes.length)
	copy(value, buffer)
	return value, nil
}

// GetPinned passes the value of key to use, in place: it is not copied, and stays valid until use returns. The error of
// use is returned, or [ErrKeyNotFound] without a call of it.
func (view *View) GetPinned(key []byte, use func(value []byte) error) error {
	keyspace, snapshot, ok := view.enter()
	if !ok {
		return ErrClosed
	}
	var value *C.windrow_value
	var failed *C.windrow_error
	C.windrow_get(keyspace, snapshot, lend(key), &value, &failed)
	view.leave()
	if err := failure(failed); err != nil {
		return err
	}
	if value == nil {
		return ErrKeyNotFound
	}
	defer C.windrow_value_free(value)
	return use(borrowed(C.windrow_value_bytes(value)))
}

// MultiGet returns the values of keys in one state, each at the position of its key: nil for a key that does not exist. It
// takes less time than as many Gets. The values share memory: clone one that is kept for long.
func (view *View) MultiGet(keys ...[]byte) ([][]byte, error) {
	keyspace, snapshot, ok := view.enter()
	if !ok {
		return nil, ErrClosed
	}
	if len(keys) == 0 {
		view.leave()
		return nil, nil
	}
	all := bytes.Join(keys, nil)
	keyLengths, lengths := make([]C.size_t, len(keys)), make([]C.size_t, len(keys))
	for i, key := range keys {
		keyLengths[i] = C.size_t(len(key))
	}
	values := make([]*C.windrow_value, len(keys))
	failed := C.windrow_go_multi_get(keyspace, snapshot, data(all), unsafe.SliceData(keyLengths),
		unsafe.SliceData(values), unsafe.SliceData(lengths), C.size_t(len(keys)))
	view.leave()
	if failed != nil {
		return nil, failure(failed)
	}
	size := 0
	for i, value := range values {
		if value != nil {
			size += int(lengths[i])
		}
	}
	buffer, found := make([]byte, size), make([][]byte, len(keys))
	C.windrow_go_move_values(unsafe.SliceData(values), C.size_t(len(values)), data(buffer))
	for i, value := range values {
		if value != nil {
			found[i], buffer = buffer[:lengths[i]:lengths[i]], buffer[lengths[i]:]
		}
	}
	return found, nil
}

// ExpiresAt is when the value of key expires: the zero time if it never does, or [ErrKeyNotFound].
func (view *View) ExpiresAt(key []byte) (time.Time, error) {
	keyspace, snapshot, ok := view.enter()
	if !ok {
		return time.Time{}, ErrClosed
	}
	defer view.leave()
	var at C.uint64_t
	var failed *C.windrow_error
	C.windrow_expires_at(keyspace, snapshot, lend(key), &at, &failed)
	return expiryOf(at, failure(failed))
}

func expiryOf(at C.uint64_t, err error) (time.Time, error) {
	if err == nil && at == C.WINDROW_EXPIRY_ABSENT {
		err = ErrKeyNotFound
	}
	return expiry(at), err
}

// Has says whether key exists.
func (view *View) Has(key []byte) (bool, error) {
	keyspace, snapshot, ok := view.enter()
	if !ok {
		return false, ErrClosed
	}
	defer view.leave()
	var exists C.bool
	var failed *C.windrow_error
	C.windrow_contains(keyspace, snapshot, lend(key), &exists, &failed)
	return bool(exists), failure(failed)
}

// with runs a call with the handle.
func (keyspace *Keyspace) with(call func(keyspace *C.windrow_keyspace, failed **C.windrow_error)) error {
	if !keyspace.keyspace.enter() {
		return ErrClosed
	}
	defer keyspace.keyspace.leave()
	var failed *C.windrow_error
	call(keyspace.keyspace.pointer, &failed)
	return failure(failed)
}

// Put sets the value of key. A write may name its durability; otherwise it is that of the [Options].
func (keyspace *Keyspace) Put(key, value []byte, durability ...Durability) error {
	if keyspace.database.calls {
		key, value, durability := bytes.Clone(key), bytes.Clone(value), last(durability)
		return keyspace.with(func(handle *C.windrow_keyspace, failed **C.windrow_error) {
			C.windrow_put(handle, lend(key), lend(value), durability, failed)
		})
	}
	handle := keyspace.keyspace
	if !handle.enter() {
		return ErrClosed
	}
	failed := C.windrow_go_put(handle.pointer, data(key), C.size_t(len(key)), data(value), C.size_t(len(value)),
		last(durability))
	handle.leave()
	return failure(failed)
}

// PutWithTTL sets the value of key for ttl, in milliseconds, rounded up; a negative one is an error. From then on no read
// sees it, and a later compaction frees its space.
func (keyspace *Keyspace) PutWithTTL(key, value []byte, ttl time.Duration, durability ...Durability) error {
	lifetime, err := timeToLive(ttl)
	if err != nil {
		return err
	}
	return keyspace.with(func(handle *C.windrow_keyspace, failed **C.windrow_error) {
		C.windrow_put_with_ttl(handle, lend(key), lend(value), lifetime, last(durability), failed)
	})
}

// PutIfAbsent sets the value of key if it has none, in one step, and says whether it had none.
func (keyspace *Keyspace) PutIfAbsent(key, value []byte) (bool, error) {
	var was C.bool
	err := keyspace.with(func(handle *C.windrow_keyspace, failed **C.windrow_error) {
		C.windrow_put_if_absent(handle, lend(key), lend(value), &was, failed)
	})
	return bool(was), err
}

// Take removes key and returns its value, or [ErrKeyNotFound], in one step: of several callers, one gets it.
func (keyspace *Keyspace) Take(key []byte) ([]byte, error) {
	var value *C.windrow_value
	err := keyspace.with(func(handle *C.windrow_keyspace, failed **C.windrow_error) {
		C.windrow_take(handle, lend(key), &value, failed)
	})
	if err == nil && value == nil {
		err = ErrKeyNotFound
	}
	defer C.windrow_value_free(value)
	return copied(C.windrow_value_bytes(value)), err
}

// Delete removes key. A missing key is no error.
func (keyspace *Keyspace) Delete(key []byte, durability ...Durability) error {
	if keyspace.database.calls {
		key, durability := bytes.Clone(key), last(durability)
		return keyspace.with(func(handle *C.windrow_keyspace, failed **C.windrow_error) {
			C.windrow_delete(handle, lend(key), durability, failed)
		})
	}
	handle := keyspace.keyspace
	if !handle.enter() {
		return ErrClosed
	}
	failed := C.windrow_go_delete(handle.pointer, data(key), C.size_t(len(key)), last(durability))
	handle.leave()
	return failure(failed)
}

// DeleteRange removes all keys of a range, by one small write.
func (keyspace *Keyspace) DeleteRange(keys Range, durability ...Durability) error {
	return keyspace.with(func(handle *C.windrow_keyspace, failed **C.windrow_error) {
		C.windrow_delete_range(handle, keys.lend(), last(durability), failed)
	})
}

// Merge writes an operand, which the merge operator of the keyspace folds into the value of key.
func (keyspace *Keyspace) Merge(key, operand []byte, durability ...Durability) error {
	return keyspace.with(func(handle *C.windrow_keyspace, failed **C.windrow_error) {
		C.windrow_merge(handle, lend(key), lend(operand), last(durability), failed)
	})
}

// CompareAndSwap sets the value of key to value if it is expected, in one step, and says whether it was. Nil stands for no
// value.
func (keyspace *Keyspace) CompareAndSwap(key, expected, value []byte) (bool, error) {
	var was C.bool
	err := keyspace.with(func(handle *C.windrow_keyspace, failed **C.windrow_error) {
		C.windrow_compare_and_swap(handle, lend(key), lend(expected), lend(value), &was, failed)
	})
	return bool(was), err
}

// Compact flushes all memtables and compacts the entries of a range down to the deepest level that holds data. If ctx
// ends first, its error is returned and the work goes on.
func (keyspace *Keyspace) Compact(ctx context.Context, keys Range) error {
	return wait(ctx, func() error {
		return keyspace.with(func(handle *C.windrow_keyspace, failed **C.windrow_error) {
			C.windrow_compact_range(handle, keys.lend(), failed)
		})
	})
}

// ApproximateCount is about how many keys are in a range. It reads metadata alone.
func (keyspace *Keyspace) ApproximateCount(keys Range) (uint64, error) {
	var count C.uint64_t
	err := keyspace.with(func(handle *C.windrow_keyspace, failed **C.windrow_error) {
		C.windrow_approximate_count(handle, keys.lend(), &count, failed)
	})
	return uint64(count), err
}

// ApproximateBytes is about how many bytes of files hold the entries of a range.
func (keyspace *Keyspace) ApproximateBytes(keys Range) (uint64, error) {
	var bytes C.uint64_t
	err := keyspace.with(func(handle *C.windrow_keyspace, failed **C.windrow_error) {
		C.windrow_approximate_bytes(handle, keys.lend(), &bytes, failed)
	})
	return uint64(bytes), err
}

// Rename gives the keyspace another name. All its handles go on.
func (keyspace *Keyspace) Rename(name string) error {
	if !keyspace.keyspace.enter() {
		return ErrClosed
	}
	defer keyspace.keyspace.leave()
	return withText(name, func(name *C.char, failed **C.windrow_error) {
		C.windrow_keyspace_rename(keyspace.keyspace.pointer, name, failed)
	})
}
