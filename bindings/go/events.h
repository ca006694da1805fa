/* Events on their way to Go. The threads of Windrow leave them here, and a goroutine takes them: so no call of Windrow waits
   for Go. */

#ifndef WINDROW_GO_EVENTS_H
#define WINDROW_GO_EVENTS_H

#include <windrow.h>

typedef struct windrow_go_events windrow_go_events;

/* Has the events of a database left in a new queue. */
windrow_error *windrow_go_listen(windrow_options *options, windrow_go_events **events);

/* Waits for the next event. Free it with free. Null comes after the last event of all databases with these options: then
   the queue is gone. */
char *windrow_go_next_event(windrow_go_events *events);

#endif
