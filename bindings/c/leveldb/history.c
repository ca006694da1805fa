/* Random histories of LevelDB's C interface. Each answer is one line of the output, so two libraries that are given the
   same seed must print the same: the script history.sh compares Windrow's with LevelDB's own.

   usage: history FOLDER SEED OPERATIONS */

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "leveldb/c.h"

enum { SNAPSHOTS = 4, KEY_BYTES_MAX = 8, VALUE_BYTES_MAX = 6000 };

static uint64_t state;
static unsigned long operation;

/* A number below `bound`. */
static size_t below(size_t bound) {
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  return (size_t)((state >> 11) % bound);
}

static void check(char* error) {
  if (error != NULL) {
    fprintf(stderr, "operation %lu: %s\n", operation, error);
    exit(1);
  }
}

/* A line with the bytes, shortened to their number and a sum. */
static void print_bytes(const char* what, const char* bytes, size_t length) {
  uint64_t sum = 14695981039346656037u;
  if (bytes == NULL) {
    printf("%lu %s none\n", operation, what);
    return;
  }
  for (size_t at = 0; at < length; at++) {
    sum = (sum ^ (unsigned char)bytes[at]) * 1099511628211u;
  }
  printf("%lu %s %zu bytes %016" PRIx64 "\n", operation, what, length, sum);
}

/* One of few keys, so that histories meet them again: of any bytes, also the empty one. */
static size_t make_key(char* key) {
  static const char bytes[] = {0, 'a', 'b', (char)0x80, (char)0xff};
  size_t length = below(below(10) == 0 ? 2 : KEY_BYTES_MAX);
  for (size_t at = 0; at < length; at++) {
    key[at] = bytes[below(at < 2 ? sizeof bytes : 2)];
  }
  return length;
}

static size_t make_value(char* value) {
  size_t length = below(below(8) == 0 ? VALUE_BYTES_MAX : 200);
  memset(value, (int)below(256), length);
  if (length >= sizeof state) {
    memcpy(value, &state, sizeof state);
  }
  return length;
}

static void count_put(void* counts, const char* key, size_t key_length, const char* value,
                      size_t value_length) {
  ++*(size_t*)counts;
  print_bytes("batch puts", key, key_length);
  print_bytes("value", value, value_length);
}

static void count_delete(void* counts, const char* key, size_t key_length) {
  ++*(size_t*)counts;
  print_bytes("batch deletes", key, key_length);
}

static void write_batch(leveldb_t* db, const leveldb_writeoptions_t* options) {
  static char value[VALUE_BYTES_MAX];
  char key[KEY_BYTES_MAX];
  char* error = NULL;
  size_t writes = 0;
  leveldb_writebatch_t* batch = leveldb_writebatch_create();
  leveldb_writebatch_t* other = leveldb_writebatch_create();
  for (size_t count = below(20); count > 0; count--) {
    leveldb_writebatch_t* chosen = below(3) == 0 ? other : batch;
    size_t key_length = make_key(key);
    if (below(3) == 0) {
      leveldb_writebatch_delete(chosen, key, key_length);
    } else {
      size_t value_length = make_value(value);
      leveldb_writebatch_put(chosen, key, key_length, value, value_length);
    }
    if (below(30) == 0) leveldb_writebatch_clear(chosen);
  }
  leveldb_writebatch_append(batch, other);
  leveldb_writebatch_iterate(batch, &writes, count_put, count_delete);
  printf("%lu batch of %zu\n", operation, writes);
  leveldb_write(db, options, batch, &error);
  check(error);
  leveldb_writebatch_destroy(other);
  leveldb_writebatch_destroy(batch);
}

static void walk(leveldb_t* db, const leveldb_readoptions_t* options) {
  char key[KEY_BYTES_MAX];
  char* error = NULL;
  leveldb_iterator_t* iterator = leveldb_create_iterator(db, options);
  printf("%lu new iterator %d\n", operation, leveldb_iter_valid(iterator));
  for (size_t steps = below(60) + 1; steps > 0; steps--) {
    size_t kind = leveldb_iter_valid(iterator) ? below(20) : below(4);
    if (kind == 0) leveldb_iter_seek_to_first(iterator);
    else if (kind == 1) leveldb_iter_seek_to_last(iterator);
    else if (kind < 4) leveldb_iter_seek(iterator, key, make_key(key));
    else if (kind < 13) leveldb_iter_next(iterator);
    else leveldb_iter_prev(iterator);
    if (leveldb_iter_valid(iterator)) {
      size_t length;
      const char* bytes = leveldb_iter_key(iterator, &length);
      print_bytes("at key", bytes, length);
      bytes = leveldb_iter_value(iterator, &length);
      print_bytes("value", bytes, length);
    } else {
      printf("%lu at no entry\n", operation);
    }
  }
  leveldb_iter_get_error(iterator, &error);
  check(error);
  leveldb_iter_destroy(iterator);
}

static void print_all(leveldb_t* db, const leveldb_readoptions_t* options) {
  leveldb_iterator_t* iterator = leveldb_create_iterator(db, options);
  size_t entries = 0;
  for (leveldb_iter_seek_to_first(iterator); leveldb_iter_valid(iterator);
       leveldb_iter_next(iterator)) {
    size_t length;
    const char* bytes = leveldb_iter_key(iterator, &length);
    print_bytes("key", bytes, length);
    bytes = leveldb_iter_value(iterator, &length);
    print_bytes("value", bytes, length);
    entries++;
  }
  printf("%lu has %zu entries\n", operation, entries);
  leveldb_iter_destroy(iterator);
}

/* The kind of an error is the same, and the sentence is not. */
static void print_error(const char* what, char* error) {
  printf("%lu %s: %.*s\n", operation, what, error == NULL ? 4 : (int)strcspn(error, ":"),
         error == NULL ? "none" : error);
  leveldb_free(error);
}

static leveldb_t* reopen(leveldb_t* db, leveldb_options_t* options, const char* folder) {
  char* error = NULL;
  leveldb_close(db);
  leveldb_options_set_error_if_exists(options, 1);
  leveldb_open(options, folder, &error);
  print_error("open of one that must not exist", error);
  leveldb_options_set_error_if_exists(options, 0);
  error = NULL;
  if (below(4) == 0) {
    leveldb_repair_db(options, folder, &error);
    check(error);
  }
  db = leveldb_open(options, folder, &error);
  check(error);
  leveldb_open(options, folder, &error);
  print_error("second open", error);
  return db;
}

int main(int count, char** arguments) {
  static char value[VALUE_BYTES_MAX];
  char key[KEY_BYTES_MAX];
  char* error = NULL;
  const leveldb_snapshot_t* snapshots[SNAPSHOTS] = {NULL};
  if (count != 4) return 2;
  const char* folder = arguments[1];
  state = strtoull(arguments[2], NULL, 10) * 2654435769u + 1;
  unsigned long operations = strtoul(arguments[3], NULL, 10);

  leveldb_options_t* options = leveldb_options_create();
  leveldb_readoptions_t* reads = leveldb_readoptions_create();
  leveldb_writeoptions_t* writes = leveldb_writeoptions_create();
  leveldb_filterpolicy_t* filter = leveldb_filterpolicy_create_bloom(10);
  leveldb_cache_t* cache = leveldb_cache_create_lru(1 << 20);
  leveldb_open(options, folder, &error);
  print_error("open of a missing database", error);
  error = NULL;
  leveldb_options_set_create_if_missing(options, 1);
  leveldb_options_set_write_buffer_size(options, 64 << 10);
  leveldb_options_set_max_file_size(options, 1 << 20);
  leveldb_options_set_block_size(options, 1 << 10);
  leveldb_options_set_filter_policy(options, filter);
  leveldb_options_set_cache(options, cache);
  leveldb_options_set_compression(options, (int)below(2));
  leveldb_t* db = leveldb_open(options, folder, &error);
  check(error);

  for (operation = 1; operation <= operations; operation++) {
    size_t kind = below(100);
    size_t chosen = below(SNAPSHOTS);
    size_t key_length = make_key(key);
    size_t length;
    leveldb_readoptions_set_snapshot(reads, snapshots[chosen]);
    leveldb_writeoptions_set_sync(writes, below(50) == 0);
    if (kind < 35) {
      size_t value_length = make_value(value);
      leveldb_put(db, writes, key, key_length, value, value_length, &error);
    } else if (kind < 45) {
      leveldb_delete(db, writes, key, key_length, &error);
    } else if (kind < 60) {
      write_batch(db, writes);
    } else if (kind < 80) {
      char* found = leveldb_get(db, reads, key, key_length, &length, &error);
      print_bytes("get", found, length);
      leveldb_free(found);
    } else if (kind < 90) {
      walk(db, reads);
    } else if (kind < 96) {
      if (snapshots[chosen] != NULL) leveldb_release_snapshot(db, snapshots[chosen]);
      snapshots[chosen] = below(3) == 0 ? NULL : leveldb_create_snapshot(db);
    } else if (kind < 98) {
      leveldb_compact_range(db, below(2) ? NULL : key, key_length, NULL, 0);
    } else if (below(10) == 0) {
      for (size_t at = 0; at < SNAPSHOTS; at++) {
        if (snapshots[at] != NULL) leveldb_release_snapshot(db, snapshots[at]);
        snapshots[at] = NULL;
      }
      leveldb_readoptions_set_snapshot(reads, NULL);
      db = reopen(db, options, folder);
    } else {
      print_all(db, reads);
    }
    check(error);
  }
  leveldb_readoptions_set_snapshot(reads, NULL);
  print_all(db, reads);
  for (size_t at = 0; at < SNAPSHOTS; at++) {
    if (snapshots[at] != NULL) leveldb_release_snapshot(db, snapshots[at]);
  }
  leveldb_close(db);
  leveldb_destroy_db(options, folder, &error);
  check(error);
  leveldb_destroy_db(options, folder, &error);
  check(error);
  leveldb_cache_destroy(cache);
  leveldb_filterpolicy_destroy(filter);
  leveldb_writeoptions_destroy(writes);
  leveldb_readoptions_destroy(reads);
  leveldb_options_destroy(options);
  return 0;
}
