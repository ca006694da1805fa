/* What the programs of this folder share. Each is one file. */

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../check.h"
#include "rocksdb/c.h"

static char* error = NULL;
static char path[4096];
static rocksdb_readoptions_t* reads;
static rocksdb_writeoptions_t* writes;
/* How often a destructor of the program was called. */
static int destroyed = 0;

static inline void count_call(void* state) { ++*(int*)state; }

/* Checks that there is no error. */
static inline void check(void) {
  if (error != NULL) {
    fprintf(stderr, "error: %s\n", error);
    exit(1);
  }
}

/* Checks that there is an error with these words, and releases it. */
static inline void check_error(const char* words) {
  if (error == NULL || strstr(error, words) == NULL) {
    fprintf(stderr, "no error with \"%s\": %s\n", words, error == NULL ? "none" : error);
    exit(1);
  }
  rocksdb_free(error);
  error = NULL;
}

/* Checks a value, or that there is none. */
static inline void check_value(char* value, size_t length, const char* expected) {
  check();
  if (expected == NULL) {
    CHECK(value == NULL && length == 0);
  } else {
    CHECK(value != NULL && length == strlen(expected) && memcmp(value, expected, length) == 0);
  }
  rocksdb_free(value);
}

static inline void check_get(rocksdb_t* db, const char* key, const char* expected) {
  size_t length = 1;
  char* value = rocksdb_get(db, reads, key, strlen(key), &length, &error);
  check_value(value, length, expected);
}

static inline void check_get_cf(rocksdb_t* db, rocksdb_column_family_handle_t* family, const char* key,
                         const char* expected) {
  size_t length = 1;
  char* value = rocksdb_get_cf(db, reads, family, key, strlen(key), &length, &error);
  check_value(value, length, expected);
}

static inline void put(rocksdb_t* db, const char* key, const char* value) {
  rocksdb_put(db, writes, key, strlen(key), value, strlen(value), &error);
  check();
}

/* Checks the entry of an iterator, or that there is none. */
static inline void check_entry(rocksdb_iterator_t* iterator, const char* key, const char* value) {
  size_t length = 0;
  const char* found;
  rocksdb_iter_get_error(iterator, &error);
  check();
  CHECK((rocksdb_iter_valid(iterator) != 0) == (key != NULL));
  if (key == NULL) return;
  found = rocksdb_iter_key(iterator, &length);
  CHECK(length == strlen(key) && memcmp(found, key, length) == 0);
  found = rocksdb_iter_value(iterator, &length);
  CHECK(length == strlen(value) && memcmp(found, value, length) == 0);
  CHECK(rocksdb_iter_timestamp(iterator, &length) != NULL && length == 0);
}
