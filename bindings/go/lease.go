package windrow

import (
	"runtime"
	"sync/atomic"
)

// A lease lends a handle of C, which any thread may use, to calls. It frees the handle when it is closed and no call has
// it any longer, or when the garbage collector finds it. So no call uses a freed handle, and none waits for another.
type lease[P any] struct {
	pointer P
	free    func(P)
	cleanup runtime.Cleanup
	// The number of calls that have the handle, and isClosed if it was closed.
	uses atomic.Int64
}

const isClosed = -1 << 62

func newLease[P any](pointer P, free func(P)) *lease[P] {
	made := &lease[P]{pointer: pointer, free: free}
	made.cleanup = runtime.AddCleanup(made, free, pointer)
	return made
}

// enter takes the handle for a call, which ends with leave. It is false after the close.
func (lease *lease[P]) enter() bool {
	for {
		uses := lease.uses.Load()
		if uses < 0 {
			return false
		}
		if lease.uses.CompareAndSwap(uses, uses+1) {
			return true
		}
	}
}

func (lease *lease[P]) leave() {
	if lease.uses.Add(-1) == isClosed {
		lease.release()
	}
}

func (lease *lease[P]) close() {
	for {
		uses := lease.uses.Load()
		if uses < 0 {
			return
		}
		if lease.uses.CompareAndSwap(uses, uses+isClosed) {
			if uses == 0 {
				lease.release()
			}
			return
		}
	}
}

func (lease *lease[P]) release() {
	lease.cleanup.Stop()
	lease.free(lease.pointer)
	runtime.KeepAlive(lease)
}
