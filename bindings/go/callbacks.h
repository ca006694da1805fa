/* Functions of Go that Windrow calls. Each has a state: a handle of Go's package runtime/cgo. */

#ifndef WINDROW_GO_CALLBACKS_H
#define WINDROW_GO_CALLBACKS_H

#include <windrow.h>

/* As windrow_options_set_merge_callbacks, with an operator of Go. */
windrow_error *windrow_go_set_merge_operator(windrow_options *options, const char *keyspace, const char *name,
                                             bool has_partial, uintptr_t operator);

/* As windrow_options_set_compaction_filter, with a filter of Go. */
windrow_error *windrow_go_set_compaction_filter(windrow_options *options, const char *keyspace, const char *name,
                                                uintptr_t filter);

/* Loads the entries of a source of Go. They are sorted if `memory`, a number of bytes, is not 0. */
windrow_error *windrow_go_bulk_load(const windrow_keyspace *keyspace, uintptr_t source, size_t memory, uint64_t *count);

/* Before each entry of a chunk of a source: the lengths of its key and value, which follow. */
typedef struct {
  uint64_t lengths[2];
} windrow_go_loaded;

/* A function of Go has failed. No constant of windrow.h for results of callbacks is this number. */
#define WINDROW_GO_FAILED (-1)

/* In Go. */
int32_t windrowGoFullMerge(uintptr_t state, windrow_bytes key, windrow_bytes base, windrow_bytes *operands, size_t count,
                           windrow_sink *result);
int32_t windrowGoPartialMerge(uintptr_t state, windrow_bytes key, windrow_bytes *operands, size_t count,
                              windrow_sink *result);
int32_t windrowGoDecide(uintptr_t state, windrow_candidate *candidate, windrow_sink *replacement);
void windrowGoRelease(uintptr_t state);
/* Sets the next chunk, for which C calls free, or returns another number than WINDROW_SOURCE_ENTRY. */
int32_t windrowGoNextChunk(uintptr_t state, uint8_t **chunk, size_t *length);

#endif
