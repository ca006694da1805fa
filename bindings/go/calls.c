#include "calls.h"

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

windrow_error *windrow_go_batch_write(const windrow_database *database, const windrow_keyspace *const *keyspaces,
                                      const uint8_t *writes, size_t length, uint32_t durability) {
  windrow_error *error = NULL;
  windrow_batch *batch = windrow_batch_new();
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
  if (error == NULL) windrow_batch_write(database, batch, durability, &error);
  windrow_batch_free(batch);
  return error;
}

windrow_go_chunk windrow_go_fetch(windrow_cursor *cursor, uint32_t move, uint32_t step, const uint8_t *key,
                                  size_t key_length, bool with_values, size_t limit, uint8_t *buffer, size_t capacity) {
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
    if (with_values) {
      windrow_cursor_value(cursor, &value, &chunk.error);
      if (chunk.error != NULL) return chunk;
    }
    windrow_bytes found = windrow_cursor_key(cursor);
    uint32_t lengths[2] = {(uint32_t)found.length, (uint32_t)value.length};
    size_t needed = sizeof lengths + found.length + value.length;
    if (needed > capacity - chunk.used) {
      chunk.needed = needed;
      return chunk;
    }
    uint8_t *to = buffer + chunk.used;
    memcpy(to, lengths, sizeof lengths);
    memcpy(to + sizeof lengths, found.data, found.length);
    if (value.length > 0) memcpy(to + sizeof lengths + found.length, value.data, value.length);
    chunk.used += needed;
    if (++chunk.count == limit) return chunk;
  }
}
