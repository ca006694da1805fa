package windrow

/*
#include "calls.h"
*/
import "C"

// Snapshot is the state of all keyspaces at one moment. Compactions keep what it can read, so close it.
type Snapshot struct {
	handle *lease[*C.windrow_snapshot]
}

func newSnapshot(pointer *C.windrow_snapshot) *Snapshot {
	return &Snapshot{newLease(pointer, func(pointer *C.windrow_snapshot) { C.windrow_snapshot_free(pointer) })}
}

// Close releases the snapshot. Its views return [ErrClosed] from now on; iterations and cursors that have begun go on.
func (snapshot *Snapshot) Close() error {
	snapshot.handle.close()
	return nil
}
