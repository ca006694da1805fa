package windrow

/*
#include <stdlib.h>
#include "events.h"
*/
import "C"

import (
	"encoding/json"
	"unsafe"
)

// Event is something that a database has done or met.
type Event struct {
	// Name is flush_ended, compaction_ended, stall_began, no_space and others: see docs/watching.md.
	Name string
	// JSON is the event as an object with all its members.
	JSON json.RawMessage
}

// listen has events passed to the listener, in a goroutine that ends when nothing uses the options any more.
func listen(options *C.windrow_options, listener func(Event)) error {
	var events *C.windrow_go_events
	failed := C.windrow_go_listen(options, &events)
	go func() {
		for text := C.windrow_go_next_event(events); text != nil; text = C.windrow_go_next_event(events) {
			bytes := []byte(C.GoString(text))
			C.free(unsafe.Pointer(text))
			var event struct{ Event string }
			// Windrow has made the text.
			if json.Unmarshal(bytes, &event) == nil {
				listener(Event{event.Event, bytes})
			}
		}
	}()
	return failure(failed)
}
