#include "callbacks.h"

#include <stdlib.h>
#include <string.h>

static int32_t full_merge(void *state, windrow_bytes key, windrow_bytes base, const windrow_bytes *operands,
                          size_t count, windrow_sink *result) {
  return windrowGoFullMerge((uintptr_t)state, key, base, (windrow_bytes *)operands, count, result);
}

static int32_t partial_merge(void *state, windrow_bytes key, const windrow_bytes *operands, size_t count,
                             windrow_sink *result) {
  return windrowGoPartialMerge((uintptr_t)state, key, (windrow_bytes *)operands, count, result);
}

static int32_t decide(void *state, const windrow_candidate *candidate, windrow_sink *replacement) {
  return windrowGoDecide((uintptr_t)state, (windrow_candidate *)candidate, replacement);
}

static void release(void *state) { windrowGoRelease((uintptr_t)state); }

windrow_error *windrow_go_set_merge_operator(windrow_options *options, const char *keyspace, const char *name,
                                             bool has_partial, uintptr_t operator) {
  windrow_error *error;
  windrow_options_set_merge_callbacks(options, keyspace, name, full_merge, has_partial ? partial_merge : NULL,
                                      (void *)operator, release, &error);
  return error;
}

windrow_error *windrow_go_set_compaction_filter(windrow_options *options, const char *keyspace, const char *name,
                                                uintptr_t filter) {
  windrow_error *error;
  windrow_options_set_compaction_filter(options, keyspace, name, decide, (void *)filter, release, &error);
  return error;
}

/* The chunk of a source that is being read. */
struct source {
  uintptr_t state;
  uint8_t *chunk;
  size_t length, at;
};

static int32_t next_entry(void *state, windrow_bytes *key, windrow_bytes *value) {
  struct source *source = state;
  if (source->at == source->length) {
    free(source->chunk);
    source->chunk = NULL;
    source->length = source->at = 0;
    int32_t code = windrowGoNextChunk(source->state, &source->chunk, &source->length);
    if (code != WINDROW_SOURCE_ENTRY) return code;
  }
  windrow_go_loaded loaded;
  memcpy(&loaded, source->chunk + source->at, sizeof loaded);
  source->at += sizeof loaded;
  *key = WINDROW_BYTES(source->chunk + source->at, loaded.lengths[0]);
  source->at += loaded.lengths[0];
  *value = WINDROW_BYTES(source->chunk + source->at, loaded.lengths[1]);
  source->at += loaded.lengths[1];
  return WINDROW_SOURCE_ENTRY;
}

windrow_error *windrow_go_bulk_load(const windrow_keyspace *keyspace, uintptr_t state, size_t memory, uint64_t *count) {
  windrow_error *error;
  struct source source = {state, NULL, 0, 0};
  if (memory == 0) {
    windrow_bulk_load(keyspace, next_entry, &source, count, &error);
  } else {
    windrow_bulk_load_unsorted(keyspace, next_entry, &source, memory, count, &error);
  }
  free(source.chunk);
  return error;
}
