package windrow

/*
#include "calls.h"
*/
import "C"

import "fmt"

// Kind is the kind of an error, and an error itself: the target of [errors.Is].
type Kind int32

const (
	// ErrInvalidArgument: the arguments or options are wrong. Correct the call.
	ErrInvalidArgument Kind = C.WINDROW_INVALID_ARGUMENT
	// ErrNotFound: the database, keyspace, backup or consumer does not exist, or was dropped. A key that is missing is [ErrKeyNotFound].
	ErrNotFound Kind = C.WINDROW_NOT_FOUND
	// ErrAlreadyExists: the database exists already, or the folder of a checkpoint or of a restored backup is not empty.
	ErrAlreadyExists Kind = C.WINDROW_ALREADY_EXISTS
	// ErrLocked: this or another process has the database or the backups open.
	ErrLocked Kind = C.WINDROW_LOCKED
	// ErrNoSpace: the disk or a quota is full. Nothing was lost; free space and try again.
	ErrNoSpace Kind = C.WINDROW_NO_SPACE
	// ErrIO: the operating system reported an error.
	ErrIO Kind = C.WINDROW_IO
	// ErrCorruption: stored bytes are damaged. The message names the file and the offset if they are known.
	ErrCorruption Kind = C.WINDROW_CORRUPTION
	// ErrUnsupported: the data needs a newer version of Windrow or a feature that is off.
	ErrUnsupported Kind = C.WINDROW_UNSUPPORTED
	// ErrPoisoned: an earlier write or sync failed, and it is unknown what is durable. Reads continue, writes fail: reopen
	// the database.
	ErrPoisoned Kind = C.WINDROW_POISONED
	// ErrClosed: the database was closed, or the object of the call, or the transaction has ended.
	ErrClosed Kind = C.WINDROW_CLOSED
	// ErrReadOnly: the database is, or the backups are, open for reading only.
	ErrReadOnly Kind = C.WINDROW_READ_ONLY
	// ErrConflict: another write came in between. Nothing was written; try the transaction again.
	ErrConflict Kind = C.WINDROW_CONFLICT
	// ErrDeadlock: the transaction and others wait for each other's locks. Roll it back, so that they go on, and try it
	// again.
	ErrDeadlock Kind = C.WINDROW_DEADLOCK
	// ErrTimedOut: a lock was not free in time. Roll the transaction back and try it again.
	ErrTimedOut Kind = C.WINDROW_TIMED_OUT
	// ErrMerge: the operands of a key could not be folded. The merge operator is missing or has failed; nothing is lost.
	ErrMerge Kind = C.WINDROW_MERGE
	// ErrFellBehind: changes that were asked for are not kept any more. Begin again with a snapshot and the changes behind it.
	ErrFellBehind Kind = C.WINDROW_FELL_BEHIND
	// ErrInternal: a bug in Windrow. The message says what happened.
	ErrInternal Kind = C.WINDROW_INTERNAL
	// ErrKeyNotFound: the key that was to be read does not exist.
	ErrKeyNotFound Kind = -1
)

var kinds = map[Kind]string{
	ErrInvalidArgument: "invalid argument",
	ErrNotFound:        "not found",
	ErrAlreadyExists:   "already exists",
	ErrLocked:          "locked",
	ErrNoSpace:         "no space",
	ErrIO:              "input or output error",
	ErrCorruption:      "corruption",
	ErrUnsupported:     "unsupported",
	ErrPoisoned:        "poisoned",
	ErrClosed:          "closed",
	ErrReadOnly:        "read only",
	ErrConflict:        "conflict",
	ErrDeadlock:        "deadlock",
	ErrTimedOut:        "timed out",
	ErrMerge:           "merge failed",
	ErrFellBehind:      "fell behind",
	ErrInternal:        "internal error",
	ErrKeyNotFound:     "key not found",
}

func (kind Kind) Error() string {
	if name, ok := kinds[kind]; ok {
		return "windrow: " + name
	}
	return fmt.Sprintf("windrow: error %d", int32(kind))
}

// Error is an error with a sentence for people.
type Error struct {
	Kind Kind
	// Message is one sentence that names the fault.
	Message string
	// Keyspace and Key are what a conflict, a deadlock or a lock that was not free is about; empty for other errors.
	Keyspace string
	Key      []byte
}

func (err *Error) Error() string {
	return "windrow: " + err.Message
}

// Is makes [errors.Is] compare with a [Kind].
func (err *Error) Is(target error) bool {
	return target == err.Kind
}

// failure takes over an error of C, or null.
func failure(failed *C.windrow_error) error {
	if failed == nil {
		return nil
	}
	defer C.windrow_error_free(failed)
	err := &Error{
		Kind:    Kind(C.windrow_error_code(failed)),
		Message: C.GoString(C.windrow_error_message(failed)),
		Key:     copied(C.windrow_error_key(failed)),
	}
	if keyspace := C.windrow_error_keyspace(failed); keyspace != nil {
		err.Keyspace = C.GoString(keyspace)
	}
	return err
}

func invalid(format string, arguments ...any) error {
	return &Error{Kind: ErrInvalidArgument, Message: fmt.Sprintf(format, arguments...)}
}
