/* Calls that LevelDB does not allow. Here each is an error or does nothing, and nothing leaks: null for every pointer,
   handles that outlive their database, keys that are too long, a batch appended to itself, destructors.

   With HANDLES_ARE_CHECKED also handles that are used wrongly, which end a library with debug assertions.

   usage: misuse FOLDER */

#include "../misuse.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "leveldb/c.h"

/* Checks that there is an error with these words, and releases it. */
static void check_error(char** error, const char* words) {
  if (*error == NULL || strstr(*error, words) == NULL) {
    fprintf(stderr, "no error with \"%s\": %s\n", words, *error == NULL ? "none" : *error);
    exit(1);
  }
  leveldb_free(*error);
  *error = NULL;
}

static void count_call(void* state) { ++*(int*)state; }

static int compare_reversed(void* state, const char* first, size_t first_length,
                            const char* second, size_t second_length) {
  size_t shorter = first_length < second_length ? first_length : second_length;
  int order = memcmp(second, first, shorter);
  (void)state;
  if (order != 0) return order;
  return first_length < second_length ? 1 : first_length > second_length ? -1 : 0;
}

static const char* name_of(void* state) {
  (void)state;
  return "reversed";
}

static char* create_filter(void* state, const char* const* keys, const size_t* lengths, int count,
                           size_t* length) {
  (void)state, (void)keys, (void)lengths, (void)count, (void)length;
  abort();
}

static uint8_t key_may_match(void* state, const char* key, size_t length, const char* filter,
                             size_t filter_length) {
  (void)state, (void)key, (void)length, (void)filter, (void)filter_length;
  abort();
}

static void put_any(void* state, const char* key, size_t key_length, const char* value,
                    size_t value_length) {
  (void)key, (void)value;
  *(size_t*)state += key_length + value_length;
}

static void delete_any(void* state, const char* key, size_t key_length) {
  (void)key;
  *(size_t*)state += key_length;
}

static void pass_null(const char* folder) {
  char* error = NULL;
  size_t length = 1;
  uint64_t size = 1;
  leveldb_options_t* options = leveldb_options_create();

  CHECK(leveldb_open(NULL, folder, &error) == NULL);
  check_error(&error, "Invalid argument: a null pointer was passed as options");
  CHECK(leveldb_open(options, NULL, &error) == NULL);
  check_error(&error, "Invalid argument");
  /* The old message is released. */
  CHECK(leveldb_open(options, NULL, &error) == NULL);
  CHECK(leveldb_open(options, folder, &error) == NULL);
  check_error(&error, "Invalid argument: there is no database in");
  CHECK(leveldb_open(options, folder, NULL) == NULL);
  leveldb_destroy_db(NULL, folder, &error);
  check_error(&error, "Invalid argument");
  leveldb_destroy_db(options, NULL, &error);
  check_error(&error, "Invalid argument");
  leveldb_repair_db(options, NULL, &error);
  check_error(&error, "Invalid argument");
  leveldb_repair_db(NULL, folder, &error);
  check_error(&error, "Invalid argument");

  leveldb_put(NULL, NULL, "k", 1, "v", 1, &error);
  check_error(&error, "null pointer was passed as database");
  leveldb_delete(NULL, NULL, "k", 1, &error);
  check_error(&error, "null pointer");
  leveldb_write(NULL, NULL, NULL, &error);
  check_error(&error, "null pointer");
  CHECK(leveldb_get(NULL, NULL, "k", 1, &length, &error) == NULL);
  check_error(&error, "null pointer");
  CHECK(length == 0);
  CHECK(leveldb_create_iterator(NULL, NULL) == NULL);
  CHECK(leveldb_create_snapshot(NULL) == NULL);
  CHECK(leveldb_property_value(NULL, "leveldb.stats") == NULL);
  leveldb_approximate_sizes(NULL, 0, NULL, NULL, NULL, NULL, NULL);
  leveldb_approximate_sizes(NULL, -1, NULL, NULL, NULL, NULL, &size);
  CHECK(size == 1);
  leveldb_compact_range(NULL, NULL, 0, NULL, 0);
  leveldb_release_snapshot(NULL, NULL);
  leveldb_close(NULL);

  CHECK(leveldb_iter_valid(NULL) == 0);
  leveldb_iter_seek_to_first(NULL);
  leveldb_iter_seek_to_last(NULL);
  leveldb_iter_seek(NULL, "k", 1);
  leveldb_iter_next(NULL);
  leveldb_iter_prev(NULL);
  CHECK(leveldb_iter_key(NULL, &length) == NULL);
  CHECK(leveldb_iter_value(NULL, NULL) == NULL);
  leveldb_iter_get_error(NULL, &error);
  CHECK(error == NULL);
  leveldb_iter_destroy(NULL);

  leveldb_writebatch_put(NULL, "k", 1, "v", 1);
  leveldb_writebatch_delete(NULL, "k", 1);
  leveldb_writebatch_clear(NULL);
  leveldb_writebatch_append(NULL, NULL);
  leveldb_writebatch_iterate(NULL, NULL, put_any, delete_any);
  leveldb_writebatch_destroy(NULL);

  leveldb_options_set_comparator(NULL, NULL);
  leveldb_options_set_comparator(options, NULL);
  leveldb_options_set_filter_policy(options, NULL);
  leveldb_options_set_cache(options, NULL);
  leveldb_options_set_env(options, NULL);
  leveldb_options_set_info_log(options, NULL);
  leveldb_options_set_create_if_missing(NULL, 1);
  leveldb_readoptions_set_snapshot(NULL, NULL);
  leveldb_readoptions_set_verify_checksums(NULL, 1);
  leveldb_readoptions_set_fill_cache(NULL, 1);
  leveldb_writeoptions_set_sync(NULL, 1);
  leveldb_options_destroy(NULL);
  leveldb_readoptions_destroy(NULL);
  leveldb_writeoptions_destroy(NULL);
  leveldb_cache_destroy(NULL);
  leveldb_env_destroy(NULL);
  leveldb_comparator_destroy(NULL);
  leveldb_filterpolicy_destroy(NULL);
  leveldb_free(NULL);
  leveldb_options_destroy(options);
}

static void pass_bad_bytes(leveldb_t* db) {
  enum { TOO_LONG = (64 << 10) + 1 };
  char* error = NULL;
  size_t total = 0;
  char* key = calloc(1, TOO_LONG);
  const char* starts[2] = {"a", NULL};
  const size_t lengths[2] = {1, 1};
  uint64_t sizes[2] = {1, 1};

  leveldb_put(db, NULL, NULL, 1, "v", 1, &error);
  check_error(&error, "a null pointer was passed for 1 bytes");
  leveldb_put(db, NULL, "k", 1, NULL, 7, &error);
  check_error(&error, "null pointer");
  leveldb_put(db, NULL, key, TOO_LONG, "v", 1, &error);
  check_error(&error, "Invalid argument: a key of 65537 bytes");
  leveldb_put(db, NULL, "k", SIZE_MAX, "v", 1, &error);
  check_error(&error, "no object has");
  leveldb_delete(db, NULL, NULL, 1, &error);
  check_error(&error, "null pointer");
  CHECK(leveldb_get(db, NULL, NULL, 1, NULL, &error) == NULL);
  check_error(&error, "null pointer");
  leveldb_write(db, NULL, NULL, &error);
  check_error(&error, "a null pointer was passed as batch");
  CHECK(leveldb_property_value(db, NULL) == NULL);
  CHECK(leveldb_property_value(db, "\xff") == NULL);
  leveldb_approximate_sizes(db, 2, starts, lengths, starts, lengths, sizes);
  CHECK(sizes[0] == 0 && sizes[1] == 0);
  leveldb_compact_range(db, NULL, 3, NULL, 3);

  /* A batch reports at the write what it could not take. */
  leveldb_writebatch_t* batch = leveldb_writebatch_create();
  leveldb_writebatch_put(batch, "k", 1, "v", 1);
  leveldb_writebatch_append(batch, batch);
  leveldb_writebatch_append(batch, NULL);
  leveldb_writebatch_iterate(batch, &total, put_any, delete_any);
  leveldb_writebatch_iterate(batch, &total, NULL, NULL);
  CHECK(total == 4);
  leveldb_writebatch_put(batch, "k", 1, NULL, 7);
  leveldb_writebatch_delete(batch, NULL, 9);
  leveldb_write(db, NULL, batch, &error);
  check_error(&error, "Invalid argument: a null pointer was passed for 7 bytes");
  leveldb_writebatch_clear(batch);
  leveldb_writebatch_put(batch, key, TOO_LONG, "v", 1);
  leveldb_write(db, NULL, batch, &error);
  check_error(&error, "Invalid argument: a key of 65537 bytes");
  leveldb_writebatch_destroy(batch);

  leveldb_iterator_t* iterator = leveldb_create_iterator(db, NULL);
  leveldb_iter_next(iterator);
  leveldb_iter_prev(iterator);
  CHECK(!leveldb_iter_valid(iterator));
  leveldb_iter_get_error(iterator, &error);
  CHECK(error == NULL);
  leveldb_iter_seek(iterator, NULL, 1);
  CHECK(!leveldb_iter_valid(iterator));
  leveldb_iter_get_error(iterator, &error);
  check_error(&error, "null pointer");
  leveldb_iter_destroy(iterator);
  free(key);
}

/* A null bound is none, whatever its length. */
static void compact_all(leveldb_t* db) {
  char* error = NULL;
  const char *start = "", *limit = "~";
  size_t start_length = 0, limit_length = 1;
  uint64_t size = 0;
  leveldb_put(db, NULL, "compacted", 9, "1", 1, &error);
  CHECK(error == NULL);
  leveldb_approximate_sizes(db, 1, &start, &start_length, &limit, &limit_length, &size);
  CHECK(size == 0);
  leveldb_compact_range(db, NULL, 1, NULL, 1);
  leveldb_approximate_sizes(db, 1, &start, &start_length, &limit, &limit_length, &size);
  CHECK(size > 0);
}

/* Threads may read an iterator that stands still: the first one that asks for a value reads it. */
static void* look(void* iterator) {
  size_t length;
  for (int round = 0; round < 100; round++) {
    const char* value = leveldb_iter_value(iterator, &length);
    CHECK(length == 1 << 20 && value[0] == 'v' && value[length - 1] == 'v');
    CHECK(leveldb_iter_valid(iterator) && leveldb_iter_key(iterator, &length)[0] == 'l');
  }
  return NULL;
}

static void share_iterator(leveldb_t* db) {
  char* error = NULL;
  char* large = malloc(1 << 20);
  memset(large, 'v', 1 << 20);
  leveldb_put(db, NULL, "large", 5, large, 1 << 20, &error);
  CHECK(error == NULL);
  leveldb_compact_range(db, NULL, 0, NULL, 0);
  for (int round = 0; round < 20; round++) {
    leveldb_iterator_t* iterator = leveldb_create_iterator(db, NULL);
    leveldb_iter_seek(iterator, "large", 5);
    pthread_t threads[4];
    for (int number = 0; number < 4; number++)
      CHECK(pthread_create(&threads[number], NULL, look, iterator) == 0);
    for (int number = 0; number < 4; number++) pthread_join(threads[number], NULL);
    leveldb_iter_destroy(iterator);
  }
  free(large);
}

/* Handles that outlive the database are safe, and it can be opened again. */
static void outlive(leveldb_t* db, leveldb_options_t* options, const char* folder) {
  char* error = NULL;
  size_t length;
  leveldb_put(db, NULL, "a", 1, "1", 1, &error);
  const leveldb_snapshot_t* snapshot = leveldb_create_snapshot(db);
  leveldb_readoptions_t* reads = leveldb_readoptions_create();
  leveldb_readoptions_set_snapshot(reads, snapshot);
  leveldb_put(db, NULL, "a", 1, "2", 1, &error);
  leveldb_release_snapshot(db, snapshot);
  char* value = leveldb_get(db, reads, "a", 1, &length, &error);
  CHECK(error == NULL && length == 1 && value[0] == '1' && value[1] == 0);
  leveldb_free(value);
  leveldb_iterator_t* iterator = leveldb_create_iterator(db, reads);
  leveldb_iter_seek_to_first(iterator);
  CHECK(leveldb_iter_valid(iterator));
  leveldb_close(db);
  leveldb_iter_next(iterator);
  leveldb_iter_seek_to_last(iterator);

  db = leveldb_open(options, folder, &error);
  CHECK(error == NULL);
  CHECK(leveldb_open(options, folder, &error) == NULL);
  check_error(&error, "IO error: the database in");
  leveldb_destroy_db(options, folder, &error);
  check_error(&error, "IO error: the database in");
  CHECK(leveldb_get(db, reads, "a", 1, &length, &error) == NULL);
  check_error(&error, "Invalid argument: the snapshot was taken of another database");
  leveldb_iter_destroy(iterator);
  leveldb_readoptions_destroy(reads);
  leveldb_close(db);
}

static void use_policies(leveldb_options_t* options, const char* folder) {
  int destroyed = 0;
  char* error = NULL;
  leveldb_comparator_t* comparator =
      leveldb_comparator_create(&destroyed, count_call, compare_reversed, name_of);
  leveldb_filterpolicy_t* filter = leveldb_filterpolicy_create(&destroyed, count_call, create_filter,
                                                               key_may_match, name_of);
  leveldb_options_set_comparator(options, comparator);
  leveldb_options_set_filter_policy(options, filter);
  leveldb_t* db = leveldb_open(options, folder, &error);
  CHECK(error == NULL);
  leveldb_put(db, NULL, "k1", 2, "v", 1, &error);
  CHECK(error == NULL);
  leveldb_put(db, NULL, "k2", 2, "v", 1, &error);
  check_error(&error, "Not implemented: the comparator does not order the keys \"k1\" and \"k2\"");
  leveldb_compact_range(db, NULL, 0, NULL, 0);
  leveldb_close(db);
  CHECK(destroyed == 0);
  leveldb_comparator_destroy(comparator);
  CHECK(destroyed == 1);
  leveldb_filterpolicy_destroy(filter);
  CHECK(destroyed == 2);
  leveldb_options_set_comparator(options, NULL);
  leveldb_options_set_filter_policy(options, NULL);
  leveldb_comparator_destroy(leveldb_comparator_create(NULL, NULL, NULL, NULL));
  leveldb_filterpolicy_destroy(leveldb_filterpolicy_create(NULL, NULL, NULL, NULL, NULL));
}

static void destroy_twice(void) {
  leveldb_writebatch_t* batch = leveldb_writebatch_create();
  leveldb_writebatch_destroy(batch);
  leveldb_writebatch_destroy(batch);
}

static void use_after_destruction(void) {
  leveldb_options_t* options = leveldb_options_create();
  leveldb_options_destroy(options);
  leveldb_options_set_block_size(options, 4096);
}

static void pass_options_as_batch(void) {
  leveldb_writebatch_clear((leveldb_writebatch_t*)leveldb_options_create());
}

static void use_handles_wrongly(void) {
#ifdef HANDLES_ARE_CHECKED
  aborts("as a WriteBatch", destroy_twice);
  aborts("was released", use_after_destruction);
  aborts("is of the type OpenOptions", pass_options_as_batch);
#else
  (void)destroy_twice, (void)use_after_destruction, (void)pass_options_as_batch;
#endif
}

int main(int count, char** arguments) {
  char* error = NULL;
  if (count != 2) return 2;
  use_handles_wrongly();
  const char* folder = arguments[1];
  pass_null(folder);
  leveldb_options_t* options = leveldb_options_create();
  leveldb_options_set_create_if_missing(options, 1);
  leveldb_options_set_paranoid_checks(options, 1);
  leveldb_options_set_block_restart_interval(options, 16);
  leveldb_t* db = leveldb_open(options, folder, &error);
  CHECK(error == NULL);
  pass_bad_bytes(db);
  compact_all(db);
  share_iterator(db);
  outlive(db, options, folder);
  use_policies(options, folder);
  leveldb_destroy_db(options, folder, &error);
  CHECK(error == NULL);
  leveldb_options_destroy(options);

  leveldb_env_t* environment = leveldb_create_default_env();
  char* directory = leveldb_env_get_test_directory(environment);
  CHECK(directory != NULL && strlen(directory) > 0);
  leveldb_free(directory);
  leveldb_env_destroy(environment);
  CHECK(leveldb_major_version() == 1 && leveldb_minor_version() == 23);
  return 0;
}
