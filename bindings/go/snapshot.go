package windrow

/*
#include "calls.h"
*/
import "C"

// Snapshot is the state of all keyspaces at one moment. Compactions keep what it can read, so close it.
type Snapshot struct {
	handle   *lease[*C.windrow_snapshot]
	sequence uint64
}

func newSnapshot(pointer *C.windrow_snapshot) *Snapshot {
	free := func(pointer *C.windrow_snapshot) { C.windrow_snapshot_free(pointer) }
	return &Snapshot{newLease(pointer, free), uint64(C.windrow_snapshot_sequence(pointer))}
}

// Sequence is the sequence number of the newest write in the snapshot, whose changes are those up to here.
func (snapshot *Snapshot) Sequence() uint64 {
	return snapshot.sequence
}

// Close releases the snapshot. Its views return [ErrClosed] from now on; iterations and cursors that have begun go on.
func (snapshot *Snapshot) Close() error {
	snapshot.handle.close()
	return nil
}
