/* Calls of Windrow that would be several from Go: each crosses from Go to C once. None keeps a pointer of Go. */

#ifndef WINDROW_GO_CALLS_H
#define WINDROW_GO_CALLS_H

#include <windrow.h>

/* A value that a read has found. It is in the buffer if it fits; otherwise `value` has it, and is freed by the caller. */
typedef struct {
  windrow_error *error;
  windrow_value *value;
  windrow_bytes bytes;
  bool exists;
} windrow_go_found;

windrow_go_found windrow_go_get(const windrow_keyspace *keyspace, const windrow_snapshot *snapshot, const uint8_t *key,
                                size_t key_length, uint8_t *buffer, size_t capacity);

windrow_go_found windrow_go_transaction_get(windrow_transaction *transaction, const windrow_keyspace *keyspace,
                                            const uint8_t *key, size_t key_length, uint32_t intent, uint8_t *buffer,
                                            size_t capacity);

windrow_error *windrow_go_put(const windrow_keyspace *keyspace, const uint8_t *key, size_t key_length,
                              const uint8_t *value, size_t value_length, uint32_t durability);

windrow_error *windrow_go_delete(const windrow_keyspace *keyspace, const uint8_t *key, size_t key_length,
                                 uint32_t durability);

windrow_error *windrow_go_transaction_put(windrow_transaction *transaction, const windrow_keyspace *keyspace,
                                          const uint8_t *key, size_t key_length, const uint8_t *value,
                                          size_t value_length);

/* The writes of a batch, as `batch.go` encodes them. */
#define WINDROW_GO_PUT 0
#define WINDROW_GO_DELETE 1
#define WINDROW_GO_DELETE_RANGE 2
#define WINDROW_GO_MERGE 3

typedef struct {
  uint32_t what;
  /* The position of its keyspace. */
  uint32_t keyspace;
  /* Of the two byte strings that follow: key and value, key and operand, or start and end. */
  uint64_t lengths[2];
  /* Whether each is there: a bound may be none. */
  uint64_t present[2];
} windrow_go_write;

/* Makes a batch of the writes and writes it. */
windrow_error *windrow_go_batch_write(const windrow_database *database, const windrow_keyspace *const *keyspaces,
                                      const uint8_t *writes, size_t length, uint32_t durability);

/* How a cursor moves. */
#define WINDROW_GO_STAY 0
#define WINDROW_GO_FIRST 1
#define WINDROW_GO_LAST 2
#define WINDROW_GO_NEXT 3
#define WINDROW_GO_PREVIOUS 4
#define WINDROW_GO_SEEK 5

/* Entries in a buffer: for each the lengths of key and value, 4 bytes each, and the two. */
typedef struct {
  /* What came after the entries: an error, */
  windrow_error *error;
  /* the end, */
  bool has_ended;
  /* or an entry of so many bytes, which did not fit; the cursor is there. Otherwise 0: it is at the last of the entries. */
  size_t needed;
  size_t count;
  size_t used;
} windrow_go_chunk;

/* Moves the cursor by `move` and then by steps, and copies the entries that it reaches: `limit` at most. */
windrow_go_chunk windrow_go_fetch(windrow_cursor *cursor, uint32_t move, uint32_t step, const uint8_t *key,
                                  size_t key_length, bool with_values, size_t limit, uint8_t *buffer, size_t capacity);

#endif
