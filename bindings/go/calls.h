/* Calls of Windrow that would be several from Go: each crosses from Go to C once. None keeps a pointer of Go.

   Functions whose names end with "calling" do the same as those without. They are for databases with functions of Go,
   such as a merge operator: only from these may C call back into Go, whose stack may move then. */

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

windrow_go_found windrow_go_get_calling(const windrow_keyspace *keyspace, const windrow_snapshot *snapshot,
                                        const uint8_t *key, size_t key_length, uint8_t *buffer, size_t capacity);

windrow_go_found windrow_go_transaction_get_calling(windrow_transaction *transaction, const windrow_keyspace *keyspace,
                                                    const uint8_t *key, size_t key_length, uint32_t intent,
                                                    uint8_t *buffer, size_t capacity);

/* As windrow_multi_get. The keys lie one behind the other in `keys`. `lengths` receives the bytes of each value, SIZE_MAX
   for a key that does not exist. */
windrow_error *windrow_go_multi_get(const windrow_keyspace *keyspace, const windrow_snapshot *snapshot,
                                    const uint8_t *keys, const size_t *key_lengths, windrow_value **values,
                                    size_t *lengths, size_t count);

/* Copies values into the buffer, one behind the other, and frees them. */
void windrow_go_move_values(windrow_value **values, size_t count, uint8_t *buffer);

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
#define WINDROW_GO_PUT_WITH_TTL 4

typedef struct {
  uint32_t what;
  /* The position of its keyspace. */
  uint32_t keyspace;
  /* Of WINDROW_GO_PUT_WITH_TTL, in milliseconds. */
  uint64_t ttl;
  /* Of the two byte strings that follow: key and value, key and operand, or start and end. */
  uint64_t lengths[2];
  /* Whether each is there: a bound may be none. */
  uint64_t present[2];
} windrow_go_write;

/* Makes a batch and writes it. It begins with what `start` says, the bytes of a batch, if there are any. */
windrow_error *windrow_go_batch_write(const windrow_database *database, const windrow_keyspace *const *keyspaces,
                                      const uint8_t *start, size_t start_length, const uint8_t *writes, size_t length,
                                      uint32_t durability);

windrow_error *windrow_go_batch_write_calling(const windrow_database *database,
                                              const windrow_keyspace *const *keyspaces, const uint8_t *start,
                                              size_t start_length, const uint8_t *writes, size_t length,
                                              uint32_t durability);

/* Makes such a batch. It is null after an error. */
windrow_error *windrow_go_batch(const windrow_database *database, const windrow_keyspace *const *keyspaces,
                                const uint8_t *start, size_t start_length, const uint8_t *writes, size_t length,
                                windrow_batch **batch);

/* A write of a batch as bytes. Its keyspace, key and value follow. */
typedef struct {
  uint64_t lengths[3];
  uint64_t expiry;
  uint32_t kind;
  /* Whether the value is there: the end of a range may be none. */
  uint32_t has_value;
} windrow_go_visited;

/* All writes of the batch, as a windrow_go_visited each. Free `*writes` with free. */
windrow_error *windrow_go_batch_visit(const windrow_batch *batch, uint8_t **writes, size_t *length);

/* What a feed gives. */
typedef struct {
  windrow_error *error;
  /* Null if there is none. The caller frees it. */
  windrow_change *change;
  uint64_t sequence, first_sequence;
  uint32_t kind;
  /* The writes, as a windrow_go_visited each, and for each keyspace 8 bytes with the length of its name, and the name. Free
     both with free. */
  uint8_t *writes, *keyspaces;
  size_t writes_length, keyspaces_length;
} windrow_go_change;

/* Waits for the next change for `timeout` milliseconds. */
windrow_go_change windrow_go_next_change(windrow_changes *changes, uint64_t timeout);

/* How a cursor moves. */
#define WINDROW_GO_STAY 0
#define WINDROW_GO_FIRST 1
#define WINDROW_GO_LAST 2
#define WINDROW_GO_NEXT 3
#define WINDROW_GO_PREVIOUS 4
#define WINDROW_GO_SEEK 5

/* What is read of an entry beside its key. */
#define WINDROW_GO_VALUES 1
#define WINDROW_GO_KEYSPACES 2

/* Entries in a buffer: for each the lengths of key and value and the position of its keyspace, 4 bytes each, and the key and
   the value. */
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
                                  size_t key_length, uint32_t parts, size_t limit, uint8_t *buffer, size_t capacity);

windrow_go_chunk windrow_go_fetch_calling(windrow_cursor *cursor, uint32_t move, uint32_t step, const uint8_t *key,
                                          size_t key_length, uint32_t parts, size_t limit, uint8_t *buffer,
                                          size_t capacity);

#endif
