#include "calls.h"

#include <stdlib.h>
#include <string.h>

static windrow_go_found found(windrow_error *error, windrow_value *value, uint8_t *buffer, size_t capacity) {
  windrow_go_found found = {error, NULL, {NULL, 0}, value != NULL};
  if (value == NULL) return found;
  found.bytes = windrow_value_bytes(value);
  if (found.bytes.length > capacity) {
    found.value = value;
    return found;
  }
  if (found.bytes.length > 0) memcpy(buffer, found.bytes.data, found.bytes.length);
  found.bytes.data = NULL;
  windrow_value_free(value);
  return found;
}

windrow_go_found windrow_go_get(const windrow_keyspace *keyspace, const windrow_snapshot *snapshot, const uint8_t *key,
                                size_t key_length, uint8_t *buffer, size_t capacity) {
  windrow_error *error;
  windrow_value *value;
  windrow_get(keyspace, snapshot, WINDROW_BYTES(key, key_length), &value, &error);
  return found(error, value, buffer, capacity);
}

windrow_go_found windrow_go_transaction_get(windrow_transaction *transaction, const windrow_keyspace *keyspace,
                                            const uint8_t *key, size_t key_length, uint32_t intent, uint8_t *buffer,
                                            size_t capacity) {
  windrow_error *error;
  windrow_value *value;
  windrow_transaction_get(transaction, keyspace, WINDROW_BYTES(key, key_length), intent, &value, &error);
  return found(error, value, buffer, capacity);
}

windrow_go_found windrow_go_get_calling(const windrow_keyspace *keyspace, const windrow_snapshot *snapshot,
                                        const uint8_t *key, size_t key_length, uint8_t *buffer, size_t capacity) {
  return windrow_go_get(keyspace, snapshot, key, key_length, buffer, capacity);
}

windrow_go_found windrow_go_transaction_get_calling(windrow_transaction *transaction, const windrow_keyspace *keyspace,
                                                    const uint8_t *key, size_t key_length, uint32_t intent,
                                                    uint8_t *buffer, size_t capacity) {
  return windrow_go_transaction_get(transaction, keyspace, key, key_length, intent, buffer, capacity);
}

/* Space for `count` elements. Nobody can go on without it, as in Go. */
static void *space(size_t count, size_t size) {
  void *space = calloc(count == 0 ? 1 : count, size);
  if (space == NULL) abort();
  return space;
}

windrow_error *windrow_go_multi_get(const windrow_keyspace *keyspace, const windrow_snapshot *snapshot,
                                    const uint8_t *keys, const size_t *key_lengths, windrow_value **values,
                                    size_t *lengths, size_t count) {
  windrow_error *error;
  windrow_bytes *all = space(count, sizeof *all);
  for (size_t i = 0; i < count; i++) {
    all[i] = WINDROW_BYTES(keys, key_lengths[i]);
    /* Null if no key has bytes. */
    if (key_lengths[i] > 0) keys += key_lengths[i];
  }
  windrow_multi_get(keyspace, snapshot, all, values, count, &error);
  free(all);
  for (size_t i = 0; i < count; i++) {
    lengths[i] = values[i] == NULL ? SIZE_MAX : windrow_value_bytes(values[i]).length;
  }
  return error;
}

void windrow_go_move_values(windrow_value **values, size_t count, uint8_t *buffer) {
  for (size_t i = 0; i < count; i++) {
    windrow_bytes bytes = windrow_value_bytes(values[i]);
    if (bytes.length > 0) {
      memcpy(buffer, bytes.data, bytes.length);
      buffer += bytes.length;
    }
    windrow_value_free(values[i]);
  }
}

windrow_error *windrow_go_put(const windrow_keyspace *keyspace, const uint8_t *key, size_t key_length,
                              const uint8_t *value, size_t value_length, uint32_t durability) {
  windrow_error *error;
  windrow_put(keyspace, WINDROW_BYTES(key, key_length), WINDROW_BYTES(value, value_length), durability, &error);
  return error;
}

windrow_error *windrow_go_delete(const windrow_keyspace *keyspace, const uint8_t *key, size_t key_length,
                                 uint32_t durability) {
  windrow_error *error;
  windrow_delete(keyspace, WINDROW_BYTES(key, key_length), durability, &error);
  return error;
}

windrow_error *windrow_go_transaction_put(windrow_transaction *transaction, const windrow_keyspace *keyspace,
                                          const uint8_t *key, size_t key_length, const uint8_t *value,
                                          size_t value_length) {
  windrow_error *error;
  windrow_transaction_put(transaction, keyspace, WINDROW_BYTES(key, key_length), WINDROW_BYTES(value, value_length),
                          &error);
  return error;
}

windrow_error *windrow_go_batch(const windrow_database *database, const windrow_keyspace *const *keyspaces,
                                const uint8_t *start, size_t start_length, const uint8_t *writes, size_t length,
                                windrow_batch **made) {
  windrow_error *error = NULL;
  windrow_batch *batch;
  if (start == NULL) {
    batch = windrow_batch_new();
  } else {
    windrow_batch_from_bytes(database, WINDROW_BYTES(start, start_length), &batch, &error);
  }
  size_t at = 0;
  while (at < length && error == NULL) {
    windrow_go_write write;
    windrow_bytes bytes[2];
    memcpy(&write, writes + at, sizeof write);
    at += sizeof write;
    for (int i = 0; i < 2; i++) {
      bytes[i] = WINDROW_BYTES(write.present[i] ? writes + at : NULL, write.lengths[i]);
      at += write.lengths[i];
    }
    const windrow_keyspace *keyspace = keyspaces[write.keyspace];
    switch (write.what) {
      case WINDROW_GO_PUT:
        windrow_batch_put(batch, keyspace, bytes[0], bytes[1], &error);
        break;
      case WINDROW_GO_PUT_WITH_TTL:
        windrow_batch_put_with_ttl(batch, keyspace, bytes[0], bytes[1], write.ttl, &error);
        break;
      case WINDROW_GO_DELETE:
        windrow_batch_delete(batch, keyspace, bytes[0], &error);
        break;
      case WINDROW_GO_DELETE_RANGE:
        windrow_batch_delete_range(batch, keyspace, (windrow_range){bytes[0], bytes[1]}, &error);
        break;
      default:
        windrow_batch_merge(batch, keyspace, bytes[0], bytes[1], &error);
    }
  }
  if (error != NULL) {
    windrow_batch_free(batch);
    batch = NULL;
  }
  *made = batch;
  return error;
}

windrow_error *windrow_go_batch_write(const windrow_database *database, const windrow_keyspace *const *keyspaces,
                                      const uint8_t *start, size_t start_length, const uint8_t *writes, size_t length,
                                      uint32_t durability) {
  windrow_batch *batch;
  windrow_error *error = windrow_go_batch(database, keyspaces, start, start_length, writes, length, &batch);
  if (error == NULL) windrow_batch_write(database, batch, durability, &error);
  windrow_batch_free(batch);
  return error;
}

windrow_error *windrow_go_batch_write_calling(const windrow_database *database,
                                              const windrow_keyspace *const *keyspaces, const uint8_t *start,
                                              size_t start_length, const uint8_t *writes, size_t length,
                                              uint32_t durability) {
  return windrow_go_batch_write(database, keyspaces, start, start_length, writes, length, durability);
}

/* Bytes that grow. */
struct text {
  uint8_t *bytes;
  size_t length, capacity;
};

static void append(struct text *text, const void *bytes, size_t length) {
  if (length > text->capacity - text->length) {
    text->capacity = 2 * text->capacity + length;
    text->bytes = realloc(text->bytes, text->capacity);
    if (text->bytes == NULL) abort();
  }
  if (length > 0) memcpy(text->bytes + text->length, bytes, length);
  text->length += length;
}

static bool visit(void *state, const windrow_write *write) {
  windrow_go_visited visited = {{write->keyspace.length, write->key.length, write->value.length},
                                write->expiry,
                                write->kind,
                                write->value.data != NULL};
  append(state, &visited, sizeof visited);
  append(state, write->keyspace.data, write->keyspace.length);
  append(state, write->key.data, write->key.length);
  append(state, write->value.data, write->value.length);
  return true;
}

windrow_error *windrow_go_batch_visit(const windrow_batch *batch, uint8_t **writes, size_t *length) {
  windrow_error *error;
  struct text text = {NULL, 0, 0};
  windrow_batch_visit(batch, visit, &text, &error);
  *writes = text.bytes;
  *length = text.length;
  return error;
}

windrow_go_change windrow_go_next_change(windrow_changes *changes, uint64_t timeout) {
  windrow_go_change next = {0};
  windrow_changes_next(changes, timeout, &next.change, &next.error);
  if (next.change == NULL) return next;
  next.kind = windrow_change_kind(next.change);
  next.sequence = windrow_change_sequence(next.change);
  next.first_sequence = windrow_change_first_sequence(next.change);
  struct text writes = {NULL, 0, 0}, keyspaces = {NULL, 0, 0};
  windrow_change_visit(next.change, visit, &writes, &next.error);
  for (size_t i = 0;; i++) {
    windrow_bytes name = windrow_change_keyspace(next.change, i);
    if (name.data == NULL) break;
    uint64_t length = name.length;
    append(&keyspaces, &length, sizeof length);
    append(&keyspaces, name.data, name.length);
  }
  next.writes = writes.bytes;
  next.writes_length = writes.length;
  next.keyspaces = keyspaces.bytes;
  next.keyspaces_length = keyspaces.length;
  return next;
}

windrow_go_chunk windrow_go_fetch(windrow_cursor *cursor, uint32_t move, uint32_t step, const uint8_t *key,
                                  size_t key_length, uint32_t parts, size_t limit, uint8_t *buffer, size_t capacity) {
  windrow_go_chunk chunk = {NULL, false, 0, 0, 0};
  for (;; move = step) {
    bool is_valid = true;
    switch (move) {
      case WINDROW_GO_STAY:
        break;
      case WINDROW_GO_FIRST:
        windrow_cursor_seek_to_first(cursor, &is_valid, &chunk.error);
        break;
      case WINDROW_GO_LAST:
        windrow_cursor_seek_to_last(cursor, &is_valid, &chunk.error);
        break;
      case WINDROW_GO_NEXT:
        windrow_cursor_next(cursor, &is_valid, &chunk.error);
        break;
      case WINDROW_GO_PREVIOUS:
        windrow_cursor_prev(cursor, &is_valid, &chunk.error);
        break;
      default:
        windrow_cursor_seek(cursor, WINDROW_BYTES(key, key_length), &is_valid, &chunk.error);
    }
    if (chunk.error != NULL) return chunk;
    if (!is_valid) {
      chunk.has_ended = true;
      return chunk;
    }
    windrow_bytes value = {NULL, 0};
    if (parts & WINDROW_GO_VALUES) {
      windrow_cursor_value(cursor, &value, &chunk.error);
      if (chunk.error != NULL) return chunk;
    }
    windrow_bytes found = windrow_cursor_key(cursor);
    uint32_t header[3] = {(uint32_t)found.length, (uint32_t)value.length, 0};
    if (parts & WINDROW_GO_KEYSPACES) header[2] = (uint32_t)windrow_cursor_keyspace(cursor);
    size_t needed = sizeof header + found.length + value.length;
    if (needed > capacity - chunk.used) {
      chunk.needed = needed;
      return chunk;
    }
    uint8_t *to = buffer + chunk.used;
    memcpy(to, header, sizeof header);
    memcpy(to + sizeof header, found.data, found.length);
    if (value.length > 0) memcpy(to + sizeof header + found.length, value.data, value.length);
    chunk.used += needed;
    if (++chunk.count == limit) return chunk;
  }
}

windrow_go_chunk windrow_go_fetch_calling(windrow_cursor *cursor, uint32_t move, uint32_t step, const uint8_t *key,
                                          size_t key_length, uint32_t parts, size_t limit, uint8_t *buffer,
                                          size_t capacity) {
  return windrow_go_fetch(cursor, move, step, key, key_length, parts, limit, buffer, capacity);
}
