/* Every function of windrow.h, with answers that are checked, and its misuse as far as it is an error.

   usage: test FOLDER: an empty folder */

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../check.h"
#include "windrow.h"

/* Runs a call with the error `error`, which must be none. */
#define OK(call)                                                                                 \
  do {                                                                                           \
    windrow_error* error = (windrow_error*)1;                                                    \
    int code = (call);                                                                           \
    if (code != WINDROW_OK || error != NULL) {                                                   \
      fprintf(stderr, "%s:%d: %s: %d %s\n", __FILE__, __LINE__, #call, code,                     \
              windrow_error_message(error));                                                     \
      exit(1);                                                                                   \
    }                                                                                            \
  } while (0)

/* Runs a call with the error `error`, which must have the code `expected` and the words `words`. */
#define FAILS(expected, words, call)                                                             \
  do {                                                                                           \
    windrow_error* error = NULL;                                                                 \
    int code = (call);                                                                           \
    if (code != (expected) || windrow_error_code(error) != code ||                               \
        strstr(windrow_error_message(error), words) == NULL) {                                   \
      fprintf(stderr, "%s:%d: %s: %d %s\n", __FILE__, __LINE__, #call, code,                     \
              windrow_error_message(error));                                                     \
      exit(1);                                                                                   \
    }                                                                                            \
    windrow_error_free(error);                                                                   \
  } while (0)

#define NULLS(call) FAILS(WINDROW_INVALID_ARGUMENT, "null pointer", call)

static const windrow_range everything;
static const windrow_bytes none;

static windrow_bytes text(const char* text) { return WINDROW_BYTES(text, strlen(text)); }

static windrow_range between(const char* start, const char* end) {
  windrow_range range = {text(start), text(end)};
  return range;
}

static bool is(windrow_bytes bytes, const char* expected) {
  return bytes.length == strlen(expected) && memcmp(bytes.data, expected, bytes.length) == 0;
}

/* A path in the folder of the test, in one of a few buffers. */
static const char* folder;
static const char* in_folder(const char* name) {
  static char paths[4][1024];
  static int next;
  char* path = paths[next++ % 4];
  snprintf(path, sizeof paths[0], "%s/%s", folder, name);
  return path;
}

static void check_value(windrow_value* value, const char* expected) {
  if (expected == NULL) {
    CHECK(value == NULL);
  } else {
    CHECK(value != NULL && is(windrow_value_bytes(value), expected));
  }
  windrow_value_free(value);
}

static void check_get(const windrow_keyspace* keyspace, const windrow_snapshot* snapshot,
                      const char* key, const char* expected) {
  windrow_value* value = (windrow_value*)1;
  bool contains = expected == NULL;
  OK(windrow_get(keyspace, snapshot, text(key), &value, &error));
  OK(windrow_contains(keyspace, snapshot, text(key), &contains, &error));
  CHECK(contains == (expected != NULL));
  check_value(value, expected);
}

static void put(const windrow_keyspace* keyspace, const char* key, const char* value) {
  OK(windrow_put(keyspace, text(key), text(value), WINDROW_DURABILITY_DEFAULT, &error));
}

/* The entries that a cursor passes in one direction, as "a=1 b=2 ". */
static void check_scan(windrow_cursor* cursor, bool backward, const char* expected) {
  char seen[256] = "";
  bool valid;
  if (backward) {
    OK(windrow_cursor_seek_to_last(cursor, &valid, &error));
  } else {
    OK(windrow_cursor_seek_to_first(cursor, &valid, &error));
  }
  while (valid) {
    windrow_bytes key = windrow_cursor_key(cursor), value;
    OK(windrow_cursor_value(cursor, &value, &error));
    size_t length = strlen(seen);
    snprintf(seen + length, sizeof seen - length, "%.*s=%.*s ", (int)key.length, key.data,
             (int)value.length, value.data);
    CHECK(windrow_cursor_is_valid(cursor));
    if (backward) {
      OK(windrow_cursor_prev(cursor, &valid, &error));
    } else {
      OK(windrow_cursor_next(cursor, &valid, &error));
    }
  }
  CHECK(!windrow_cursor_is_valid(cursor));
  CHECK(windrow_cursor_key(cursor).length == 0);
  if (strcmp(seen, expected) != 0) {
    fprintf(stderr, "seen \"%s\", expected \"%s\"\n", seen, expected);
    exit(1);
  }
}

static windrow_database* test_open(void) {
  windrow_database* db = (windrow_database*)1;
  windrow_options* options = windrow_options_new();
  windrow_keyspace_options* keyspace_options = NULL;

  FAILS(WINDROW_INVALID_ARGUMENT, "9 is no preset",
        windrow_keyspace_options_new(9, &keyspace_options, &error));
  CHECK(keyspace_options == NULL);
  OK(windrow_keyspace_options_new(WINDROW_PRESET_LSMA, NULL, &error));
  OK(windrow_keyspace_options_new(WINDROW_PRESET_BALANCED, &keyspace_options, &error));
  windrow_keyspace_options_set_memtable_bytes(keyspace_options, 1 << 20);
  windrow_keyspace_options_set_size_ratio(keyspace_options, 4);
  windrow_keyspace_options_set_scaling(keyspace_options, 0.9);
  windrow_keyspace_options_set_base_bytes(keyspace_options, 8 << 20);
  windrow_keyspace_options_set_file_bytes(keyspace_options, 1 << 20);
  windrow_keyspace_options_set_block_bytes(keyspace_options, 1 << 10);
  windrow_keyspace_options_set_bits_per_key(keyspace_options, 8);
  windrow_keyspace_options_set_uniform_filters(keyspace_options, true);
  windrow_keyspace_options_set_level0_runs(keyspace_options, 3);
  windrow_keyspace_options_set_segment_limit(keyspace_options, 2);
  windrow_keyspace_options_set_max_space_amp(keyspace_options, 2);
  windrow_keyspace_options_set_medium_from(keyspace_options, 200);
  windrow_keyspace_options_set_large_from(keyspace_options, 2000);
  windrow_keyspace_options_set_medium_in_place_early(keyspace_options, true);
  OK(windrow_keyspace_options_set_compression(keyspace_options, WINDROW_COMPRESSION_LZ4, &error));
  FAILS(WINDROW_INVALID_ARGUMENT, "7 is no compression",
        windrow_keyspace_options_set_compression(keyspace_options, 7, &error));
  NULLS(windrow_keyspace_options_set_compression(NULL, 0, &error));

  static const char* const of_keyspace[][2] = {
      {"size_ratio", "4.5"},      {"max_space_amp", "inf"},     {"large_from", "never"},
      {"segment_limit", "scaled"}, {"medium_in_place", "never"}, {"medium_order", "written"},
  };
  for (size_t i = 0; i < sizeof of_keyspace / sizeof *of_keyspace; i++) {
    OK(windrow_keyspace_options_set(keyspace_options, of_keyspace[i][0], of_keyspace[i][1], &error));
  }
  FAILS(WINDROW_INVALID_ARGUMENT, "medium_order: 2 is not one of sorted, written",
        windrow_keyspace_options_set(keyspace_options, "medium_order", "2", &error));
  FAILS(WINDROW_INVALID_ARGUMENT, "colour: there is no such option",
        windrow_keyspace_options_set(keyspace_options, "colour", "1", &error));

  windrow_options_set_keyspace(options, keyspace_options);
  windrow_options_set_create_if_missing(options, false);
  windrow_options_set_error_if_exists(options, true);
  windrow_options_set_sync(options, true);
  windrow_options_set_up_to_damage(options, false);
  windrow_options_set_mapped(options, false);
  windrow_options_set_lock_timeout(options, 50);
  windrow_options_set_memory_budget(options, 64 << 20);
  windrow_options_set_cache_bytes(options, 1 << 20);
  windrow_options_set_max_wal_bytes(options, 16 << 20);
  windrow_options_set_background_threads(options, 1);
  windrow_options_set_open_files_max(options, 64);
  windrow_options_set_compaction_bytes_per_second(options, 1 << 30);
  windrow_options_set_reserve_bytes(options, 1 << 20);
  windrow_options_set_scrub_interval(options, 1000);
  windrow_options_set_change_retention_idle(options, 3600000);
  static const char* const of_database[][2] = {
      {"job_log_bytes", "0"},      {"status_interval", "0"}, {"latency_interval", "16"},
      {"recovery", "strict"}, {"lock_timeout", "0.05"},
  };
  for (size_t i = 0; i < sizeof of_database / sizeof *of_database; i++) {
    OK(windrow_options_set(options, of_database[i][0], of_database[i][1], &error));
  }
  FAILS(WINDROW_INVALID_ARGUMENT, "log: 0 is not true or false",
        windrow_options_set(options, "log", "0", &error));
  FAILS(WINDROW_INVALID_ARGUMENT, "colour: there is no such option",
        windrow_options_set(options, "colour", "1", &error));
  FAILS(WINDROW_INVALID_ARGUMENT, "there is no merge operator \"add\"",
        windrow_options_set_merge_operator(options, "counters", "add", &error));
  OK(windrow_options_set_merge_operator(options, "counters", "windrow.append.2c", &error));

  FAILS(WINDROW_INVALID_ARGUMENT, "error_if_exists",
        windrow_open(in_folder("db"), options, &db, &error));
  CHECK(db == NULL);
  windrow_options_set_error_if_exists(options, false);
  FAILS(WINDROW_NOT_FOUND, "there is no database in",
        windrow_open(in_folder("db"), options, &db, &error));
  windrow_options_set_create_if_missing(options, true);
  OK(windrow_options_set(options, "log", "false", &error));
  FAILS(WINDROW_INVALID_ARGUMENT, "durability can be Sync only with a log",
        windrow_open(in_folder("db"), options, NULL, &error));
  OK(windrow_options_set(options, "log", "true", &error));
  OK(windrow_open(in_folder("db"), options, &db, &error));
  /* There is neither a job log nor a status file. */
  CHECK(access(in_folder("db"), F_OK) == 0);
  CHECK(access(in_folder("db/LOG"), F_OK) != 0);
  CHECK(access(in_folder("db/STATUS"), F_OK) != 0);
  FAILS(WINDROW_LOCKED, "open already", windrow_open(in_folder("db"), options, NULL, &error));
  windrow_options_free(options);

  /* A keyspace with the options, which keeps them. */
  windrow_keyspace* keyspace = NULL;
  OK(windrow_keyspace_open_with(db, "tuned", keyspace_options, &keyspace, &error));
  char* found = (char*)1;
  OK(windrow_keyspace_name(keyspace, &found, &error));
  CHECK(strcmp(found, "tuned") == 0);
  windrow_text_free(found);
  OK(windrow_keyspace_options_json(keyspace, &found, &error));
  CHECK(strstr(found, "\"size_ratio\":4.5") != NULL);
  windrow_text_free(found);
  OK(windrow_keyspace_name(keyspace, NULL, &error));
  windrow_keyspace_free(keyspace);
  windrow_keyspace_options_set_size_ratio(keyspace_options, 1);
  FAILS(WINDROW_INVALID_ARGUMENT, "size_ratio",
        windrow_keyspace_open_with(db, "tuned", keyspace_options, &keyspace, &error));
  CHECK(keyspace == NULL);
  windrow_keyspace_options_free(keyspace_options);
  return db;
}

static void test_keyspace(windrow_database* db) {
  enum { TOO_LONG = (64 << 10) + 1 };
  char* names = NULL;
  char* stats = NULL;
  bool was_expected = false;
  uint64_t count = 1, bytes = 1;
  windrow_keyspace *keyspace, *other = (windrow_keyspace*)1;
  OK(windrow_keyspace_open(db, "main", &keyspace, &error));
  OK(windrow_keyspace_open_existing(db, "other", &other, &error));
  CHECK(other == NULL);

  put(keyspace, "a", "1");
  OK(windrow_put(keyspace, text("b"), none, WINDROW_DURABILITY_BUFFERED, &error));
  OK(windrow_put(keyspace, text("c"), text("3"), WINDROW_DURABILITY_SYNC, &error));
  check_get(keyspace, NULL, "a", "1");
  check_get(keyspace, NULL, "b", "");
  windrow_value* empty;
  OK(windrow_get(keyspace, NULL, text("b"), &empty, &error));
  CHECK((uintptr_t)windrow_value_bytes(empty).data >= 4096);
  windrow_value_free(empty);
  check_get(keyspace, NULL, "d", NULL);
  OK(windrow_delete(keyspace, text("b"), WINDROW_DURABILITY_DEFAULT, &error));
  OK(windrow_delete(keyspace, text("missing"), WINDROW_DURABILITY_DEFAULT, &error));
  check_get(keyspace, NULL, "b", NULL);

  windrow_snapshot* snapshot = NULL;
  OK(windrow_snapshot_new(db, &snapshot, &error));
  OK(windrow_compare_and_swap(keyspace, text("a"), text("2"), text("x"), &was_expected, &error));
  CHECK(!was_expected);
  OK(windrow_compare_and_swap(keyspace, text("a"), text("1"), text("2"), &was_expected, &error));
  CHECK(was_expected);
  OK(windrow_compare_and_swap(keyspace, text("c"), text("3"), none, &was_expected, &error));
  OK(windrow_compare_and_swap(keyspace, text("d"), none, text("4"), &was_expected, &error));
  CHECK(was_expected);
  check_get(keyspace, NULL, "a", "2");
  check_get(keyspace, NULL, "c", NULL);
  check_get(keyspace, NULL, "d", "4");
  check_get(keyspace, snapshot, "a", "1");
  check_get(keyspace, snapshot, "c", "3");
  check_get(keyspace, snapshot, "d", NULL);

  put(keyspace, "e", "5");
  OK(windrow_delete_range(keyspace, between("b", "e"), WINDROW_DURABILITY_DEFAULT, &error));
  check_get(keyspace, NULL, "d", NULL);
  check_get(keyspace, NULL, "e", "5");
  OK(windrow_flush(db, &error));
  OK(windrow_compact_range(keyspace, everything, &error));
  OK(windrow_wait_idle(db, &error));
  OK(windrow_approximate_count(keyspace, everything, &count, &error));
  CHECK(count >= 2);
  OK(windrow_approximate_bytes(keyspace, between("a", "z"), &bytes, &error));
  CHECK(bytes > 0);
  OK(windrow_approximate_count(keyspace, between("z", "a"), &count, &error));
  CHECK(count == 0);
  OK(windrow_persist(db, &error));
  OK(windrow_verify(db, &error));

  /* A value stays after the close of everything else, and of its file. */
  windrow_value* value = NULL;
  OK(windrow_get(keyspace, NULL, text("e"), &value, &error));
  OK(windrow_delete_range(keyspace, everything, WINDROW_DURABILITY_DEFAULT, &error));
  OK(windrow_compact_range(keyspace, everything, &error));
  check_get(keyspace, NULL, "e", NULL);
  check_get(keyspace, snapshot, "a", "1");
  windrow_snapshot_free(snapshot);
  check_value(value, "5");

  OK(windrow_keyspace_open(db, "other", &other, &error));
  put(other, "where", "other");
  OK(windrow_keyspaces_swap(db, "main", "other", &error));
  OK(windrow_keyspace_rename(other, "renamed", &error));
  check_get(other, NULL, "where", "other");
  OK(windrow_keyspace_names_json(db, &names, &error));
  CHECK(strcmp(names, "[\"other\",\"renamed\",\"tuned\"]") == 0);
  windrow_text_free(names);
  OK(windrow_keyspace_drop(db, "renamed", &error));
  FAILS(WINDROW_NOT_FOUND, "dropped", windrow_get(other, NULL, text("where"), &value, &error));
  CHECK(value == NULL);
  windrow_keyspace_free(other);
  OK(windrow_stats_json(db, &stats, &error));
  CHECK(stats[0] == '{' && strstr(stats, "\"user_writes\":") != NULL);
  windrow_text_free(stats);

  char* key = calloc(1, TOO_LONG);
  FAILS(WINDROW_INVALID_ARGUMENT, "longer than the limit",
        windrow_put(keyspace, WINDROW_BYTES(key, TOO_LONG), none, 0, &error));
  free(key);
  FAILS(WINDROW_INVALID_ARGUMENT, "at least one byte", windrow_put(keyspace, none, none, 0, &error));
  FAILS(WINDROW_INVALID_ARGUMENT, "5 is no durability",
        windrow_put(keyspace, text("a"), none, 5, &error));
  FAILS(WINDROW_INVALID_ARGUMENT, "no merge operator",
        windrow_merge(keyspace, text("a"), text("1"), 0, &error));
  NULLS(windrow_put(keyspace, WINDROW_BYTES(NULL, 1), none, 0, &error));
  FAILS(WINDROW_INVALID_ARGUMENT, "no object has",
        windrow_put(keyspace, WINDROW_BYTES("a", SIZE_MAX), none, 0, &error));
  FAILS(WINDROW_INVALID_ARGUMENT, "not UTF-8", windrow_keyspace_drop(db, "\xff", &error));
  CHECK(windrow_keyspace_drop(db, "missing", NULL) == WINDROW_NOT_FOUND);
  windrow_keyspace_free(keyspace);
}

static void test_merges_and_batches(windrow_database* db) {
  windrow_keyspace *counters, *keyspace;
  OK(windrow_keyspace_open(db, "counters", &counters, &error));
  OK(windrow_keyspace_open(db, "batched", &keyspace, &error));
  OK(windrow_merge(counters, text("list"), text("x"), WINDROW_DURABILITY_DEFAULT, &error));
  OK(windrow_merge(counters, text("list"), text("y"), WINDROW_DURABILITY_BUFFERED, &error));
  check_get(counters, NULL, "list", "x,y");

  windrow_batch* batch = windrow_batch_new();
  OK(windrow_batch_put(batch, keyspace, text("lost"), text("0"), &error));
  windrow_batch_clear(batch);
  CHECK(windrow_batch_count(batch) == 0);
  OK(windrow_batch_put(batch, keyspace, text("a"), text("1"), &error));
  OK(windrow_batch_put(batch, keyspace, text("b"), text("2"), &error));
  OK(windrow_batch_put(batch, keyspace, text("c"), text("3"), &error));
  OK(windrow_batch_delete(batch, keyspace, text("a"), &error));
  OK(windrow_batch_delete_range(batch, keyspace, between("b", "c"), &error));
  OK(windrow_batch_merge(batch, counters, text("list"), text("z"), &error));
  CHECK(windrow_batch_count(batch) == 6);
  FAILS(WINDROW_INVALID_ARGUMENT, "at least one byte",
        windrow_batch_put(batch, keyspace, none, none, &error));
  CHECK(windrow_batch_count(batch) == 6);
  check_get(keyspace, NULL, "c", NULL);
  OK(windrow_batch_write(db, batch, WINDROW_DURABILITY_SYNC, &error));
  OK(windrow_batch_write(db, batch, WINDROW_DURABILITY_DEFAULT, &error));
  check_get(keyspace, NULL, "a", NULL);
  check_get(keyspace, NULL, "b", NULL);
  check_get(keyspace, NULL, "c", "3");
  check_get(counters, NULL, "list", "x,y,z,z");

  windrow_transaction* transaction;
  windrow_value* value;
  OK(windrow_transaction_begin(db, WINDROW_ISOLATION_SERIALIZABLE, &transaction, &error));
  OK(windrow_transaction_merge(transaction, counters, text("list"), text("t"), &error));
  FAILS(WINDROW_INVALID_ARGUMENT, "no merge operator",
        windrow_transaction_merge(transaction, keyspace, text("c"), text("t"), &error));
  OK(windrow_transaction_get(transaction, counters, text("list"), WINDROW_READ_PLAIN, &value, &error));
  check_value(value, "x,y,z,z,t");
  check_get(counters, NULL, "list", "x,y,z,z");
  OK(windrow_transaction_commit(transaction, WINDROW_DURABILITY_DEFAULT, &error));
  check_get(counters, NULL, "list", "x,y,z,z,t");
  windrow_batch_free(batch);
  windrow_keyspace_free(keyspace);
  windrow_keyspace_free(counters);
}

static void test_cursors(windrow_database* db) {
  bool valid = true;
  windrow_keyspace* keyspace;
  windrow_snapshot* snapshot;
  windrow_cursor* cursor = NULL;
  OK(windrow_keyspace_open(db, "scanned", &keyspace, &error));
  put(keyspace, "a", "1");
  put(keyspace, "ab", "2");
  put(keyspace, "b", "3");
  OK(windrow_snapshot_new(db, &snapshot, &error));
  put(keyspace, "c", "4");

  OK(windrow_cursor_open(keyspace, NULL, everything, &cursor, &error));
  CHECK(!windrow_cursor_is_valid(cursor));
  check_scan(cursor, false, "a=1 ab=2 b=3 c=4 ");
  check_scan(cursor, true, "c=4 b=3 ab=2 a=1 ");
  OK(windrow_cursor_seek(cursor, text("aa"), &valid, &error));
  CHECK(valid && is(windrow_cursor_key(cursor), "ab"));
  CHECK(windrow_cursor_prev(cursor, NULL, NULL) == WINDROW_OK);
  CHECK(is(windrow_cursor_key(cursor), "a"));
  OK(windrow_cursor_seek(cursor, text("d"), &valid, &error));
  CHECK(!valid);
  windrow_cursor_free(cursor);

  OK(windrow_cursor_open(keyspace, snapshot, everything, &cursor, &error));
  windrow_snapshot_free(snapshot);
  check_scan(cursor, true, "b=3 ab=2 a=1 ");
  windrow_cursor_free(cursor);
  OK(windrow_cursor_open(keyspace, NULL, between("ab", "c"), &cursor, &error));
  check_scan(cursor, false, "ab=2 b=3 ");
  windrow_cursor_free(cursor);
  OK(windrow_cursor_open_prefix(keyspace, NULL, text("a"), &cursor, &error));
  check_scan(cursor, true, "ab=2 a=1 ");
  windrow_cursor_free(cursor);
  windrow_keyspace_free(keyspace);
}

static void test_transactions(windrow_database* db) {
  windrow_keyspace* keyspace;
  windrow_transaction *first = NULL, *second = NULL;
  windrow_cursor* cursor;
  windrow_value* value;
  size_t savepoint = 0;
  OK(windrow_keyspace_open(db, "accounts", &keyspace, &error));
  put(keyspace, "ada", "10");

  FAILS(WINDROW_INVALID_ARGUMENT, "3 is no isolation",
        windrow_transaction_begin(db, 3, &first, &error));
  CHECK(first == NULL);
  OK(windrow_transaction_begin(db, WINDROW_ISOLATION_SERIALIZABLE, &first, &error));
  OK(windrow_transaction_begin(db, WINDROW_ISOLATION_SNAPSHOT, &second, &error));
  OK(windrow_transaction_get(first, keyspace, text("ada"), WINDROW_READ_PLAIN, &value, &error));
  check_value(value, "10");
  FAILS(WINDROW_INVALID_ARGUMENT, "4 is no intent",
        windrow_transaction_get(first, keyspace, text("ada"), 4, &value, &error));
  OK(windrow_transaction_get(first, keyspace, text("bob"), WINDROW_READ_FOR_UPDATE, &value, &error));
  check_value(value, NULL);
  OK(windrow_transaction_put(first, keyspace, text("ada"), text("9"), &error));
  OK(windrow_transaction_savepoint(first, &savepoint, &error));
  CHECK(savepoint == 1);
  OK(windrow_transaction_put(first, keyspace, text("bob"), text("1"), &error));
  OK(windrow_transaction_delete(first, keyspace, text("ada"), &error));
  OK(windrow_transaction_cursor_open(first, keyspace, everything, &cursor, &error));
  check_scan(cursor, false, "bob=1 ");
  windrow_cursor_free(cursor);
  OK(windrow_transaction_roll_back_to(first, savepoint, &error));
  OK(windrow_transaction_roll_back_to(first, savepoint, &error));
  FAILS(WINDROW_INVALID_ARGUMENT, "no savepoint 2",
        windrow_transaction_roll_back_to(first, 2, &error));
  FAILS(WINDROW_INVALID_ARGUMENT, "no savepoint 0",
        windrow_transaction_roll_back_to(first, 0, &error));
  OK(windrow_transaction_put(first, keyspace, text("cid"), text("1"), &error));
  OK(windrow_transaction_cursor_open_prefix(first, keyspace, text("c"), &cursor, &error));
  check_scan(cursor, true, "cid=1 ");
  windrow_cursor_free(cursor);
  check_get(keyspace, NULL, "ada", "10");
  OK(windrow_transaction_commit(first, WINDROW_DURABILITY_SYNC, &error));
  check_get(keyspace, NULL, "ada", "9");
  check_get(keyspace, NULL, "bob", NULL);

  /* The other one has begun before the commit. */
  OK(windrow_transaction_put(second, keyspace, text("ada"), text("8"), &error));
  windrow_error* error = NULL;
  CHECK(windrow_transaction_commit(second, WINDROW_DURABILITY_DEFAULT, &error) == WINDROW_CONFLICT);
  CHECK(windrow_error_code(error) == WINDROW_CONFLICT);
  CHECK(strcmp(windrow_error_keyspace(error), "accounts") == 0);
  CHECK(is(windrow_error_key(error), "ada"));
  windrow_error_free(error);
  check_get(keyspace, NULL, "ada", "9");

  /* Locks. */
  OK(windrow_transaction_begin_locking(db, 1000, &first, &error));
  OK(windrow_transaction_begin_locking(db, 0, &second, &error));
  OK(windrow_transaction_get(first, keyspace, text("ada"), WINDROW_READ_FOR_SHARE, &value, &error));
  check_value(value, "9");
  OK(windrow_transaction_get(second, keyspace, text("ada"), WINDROW_READ_FOR_SHARE, &value, &error));
  check_value(value, "9");
  FAILS(WINDROW_TIMED_OUT, "ada",
        windrow_transaction_put(second, keyspace, text("ada"), text("7"), &error));
  windrow_transaction_roll_back(second);
  OK(windrow_transaction_delete_range(first, keyspace, everything, &error));
  OK(windrow_transaction_cursor_open(first, keyspace, everything, &cursor, &error));
  OK(windrow_transaction_commit(first, WINDROW_DURABILITY_DEFAULT, &error));
  check_get(keyspace, NULL, "ada", NULL);
  FAILS(WINDROW_CLOSED, "transaction has ended", windrow_cursor_seek_to_first(cursor, NULL, &error));
  windrow_cursor_free(cursor);

  /* A roll-back frees the locks, whatever cursors are left. */
  put(keyspace, "ada", "9");
  OK(windrow_transaction_begin_locking(db, 0, &first, &error));
  OK(windrow_transaction_put(first, keyspace, text("ada"), text("8"), &error));
  OK(windrow_transaction_cursor_open(first, keyspace, everything, &cursor, &error));
  check_scan(cursor, false, "ada=8 ");
  bool valid;
  windrow_bytes bytes;
  OK(windrow_cursor_seek_to_last(cursor, &valid, &error));
  CHECK(valid);
  windrow_transaction_roll_back(first);
  FAILS(WINDROW_CLOSED, "transaction has ended", windrow_cursor_next(cursor, &valid, &error));
  FAILS(WINDROW_CLOSED, "transaction has ended",
        windrow_cursor_seek(cursor, text("a"), &valid, &error));
  FAILS(WINDROW_CLOSED, "transaction has ended", windrow_cursor_value(cursor, &bytes, &error));
  CHECK(!windrow_cursor_is_valid(cursor) && windrow_cursor_key(cursor).data == NULL);
  OK(windrow_transaction_begin_locking(db, 0, &second, &error));
  OK(windrow_transaction_put(second, keyspace, text("ada"), text("7"), &error));
  OK(windrow_transaction_commit(second, WINDROW_DURABILITY_DEFAULT, &error));
  windrow_cursor_free(cursor);
  check_get(keyspace, NULL, "ada", "7");
  windrow_keyspace_free(keyspace);
}

/* Milliseconds in which no test ends. */
enum { LONG = 1000 * 60 * 60 };

static void test_expiry(windrow_database* db) {
  windrow_keyspace* keyspace;
  windrow_snapshot* snapshot;
  windrow_transaction* transaction;
  windrow_cursor* cursor;
  uint64_t expiry = 0, other = 0;
  bool valid;
  OK(windrow_keyspace_open(db, "sessions", &keyspace, &error));
  put(keyspace, "stays", "1");
  OK(windrow_put_with_ttl(keyspace, text("long"), text("2"), LONG, WINDROW_DURABILITY_SYNC, &error));
  OK(windrow_put_with_ttl(keyspace, text("short"), text("3"), 0, 0, &error));
  check_get(keyspace, NULL, "long", "2");
  check_get(keyspace, NULL, "short", NULL);
  OK(windrow_expires_at(keyspace, NULL, text("long"), &expiry, &error));
  CHECK(expiry > LONG && expiry < WINDROW_EXPIRY_NEVER);
  OK(windrow_expires_at(keyspace, NULL, text("stays"), &other, &error));
  CHECK(other == WINDROW_EXPIRY_NEVER);
  OK(windrow_expires_at(keyspace, NULL, text("short"), &other, &error));
  CHECK(other == WINDROW_EXPIRY_ABSENT);
  FAILS(WINDROW_INVALID_ARGUMENT, "10889",
        windrow_put_with_ttl(keyspace, text("a"), none, UINT64_MAX, 0, &error));

  OK(windrow_snapshot_new(db, &snapshot, &error));
  put(keyspace, "long", "4");
  OK(windrow_expires_at(keyspace, snapshot, text("long"), &other, &error));
  CHECK(other == expiry);
  OK(windrow_cursor_open(keyspace, snapshot, everything, &cursor, &error));
  CHECK(windrow_cursor_expires_at(cursor) == WINDROW_EXPIRY_ABSENT);
  OK(windrow_cursor_seek_to_first(cursor, &valid, &error));
  CHECK(windrow_cursor_expires_at(cursor) == expiry);
  OK(windrow_cursor_next(cursor, &valid, &error));
  CHECK(windrow_cursor_expires_at(cursor) == WINDROW_EXPIRY_NEVER);
  windrow_cursor_free(cursor);
  windrow_snapshot_free(snapshot);

  OK(windrow_transaction_begin(db, WINDROW_ISOLATION_SERIALIZABLE, &transaction, &error));
  OK(windrow_transaction_put_with_ttl(transaction, keyspace, text("tx"), text("5"), LONG, &error));
  OK(windrow_transaction_expires_at(transaction, keyspace, text("tx"), &other, &error));
  CHECK(other >= expiry && other < WINDROW_EXPIRY_NEVER);
  OK(windrow_transaction_expires_at(transaction, keyspace, text("stays"), &other, &error));
  CHECK(other == WINDROW_EXPIRY_NEVER);
  OK(windrow_transaction_cursor_open(transaction, keyspace, everything, &cursor, &error));
  OK(windrow_cursor_seek_to_last(cursor, &valid, &error));
  CHECK(valid && windrow_cursor_expires_at(cursor) > expiry - 1);
  windrow_cursor_free(cursor);
  OK(windrow_transaction_commit(transaction, WINDROW_DURABILITY_DEFAULT, &error));
  check_get(keyspace, NULL, "tx", "5");
  windrow_keyspace_free(keyspace);

  windrow_keyspace_options* options;
  OK(windrow_keyspace_options_new(WINDROW_PRESET_BALANCED, &options, &error));
  windrow_keyspace_options_set_memtable_bytes(options, 1 << 20);
  windrow_keyspace_options_set_default_ttl(options, LONG);
  OK(windrow_keyspace_open_with(db, "expiring", options, &keyspace, &error));
  put(keyspace, "a", "1");
  OK(windrow_expires_at(keyspace, NULL, text("a"), &other, &error));
  CHECK(other >= expiry && other < WINDROW_EXPIRY_NEVER);
  windrow_keyspace_options_set_default_ttl(options, 0);
  windrow_keyspace_free(keyspace);
  OK(windrow_keyspace_open_with(db, "expiring", options, &keyspace, &error));
  put(keyspace, "b", "1");
  OK(windrow_expires_at(keyspace, NULL, text("b"), &other, &error));
  CHECK(other == WINDROW_EXPIRY_NEVER);
  windrow_keyspace_options_free(options);
  windrow_keyspace_free(keyspace);
}

static void test_single_keys(windrow_database* db) {
  windrow_keyspace *keyspace, *second;
  windrow_snapshot* snapshot;
  windrow_value *value, *values[3];
  windrow_cursor* cursor;
  bool was_absent = false, valid;
  OK(windrow_keyspace_open(db, "single", &keyspace, &error));
  OK(windrow_put_if_absent(keyspace, text("a"), text("1"), &was_absent, &error));
  CHECK(was_absent);
  OK(windrow_put_if_absent(keyspace, text("a"), text("2"), &was_absent, &error));
  CHECK(!was_absent);
  put(keyspace, "b", "2");
  OK(windrow_snapshot_new(db, &snapshot, &error));
  OK(windrow_take(keyspace, text("a"), &value, &error));
  check_value(value, "1");
  OK(windrow_take(keyspace, text("a"), &value, &error));
  check_value(value, NULL);

  const windrow_bytes keys[3] = {text("a"), text("b"), text("c")};
  OK(windrow_multi_get(keyspace, NULL, keys, values, 3, &error));
  check_value(values[0], NULL);
  check_value(values[1], "2");
  check_value(values[2], NULL);
  OK(windrow_multi_get(keyspace, snapshot, keys, values, 2, &error));
  check_value(values[0], "1");
  check_value(values[1], "2");
  OK(windrow_multi_get(keyspace, NULL, NULL, NULL, 0, &error));
  FAILS(WINDROW_INVALID_ARGUMENT, "no array",
        windrow_multi_get(keyspace, NULL, keys, NULL, 3, &error));
  values[0] = (windrow_value*)1;
  FAILS(WINDROW_INVALID_ARGUMENT, "no array",
        windrow_multi_get(keyspace, NULL, NULL, values, 1, &error));
  CHECK(values[0] == NULL);
  windrow_snapshot_free(snapshot);

  /* A cursor over two keyspaces. */
  OK(windrow_keyspace_open(db, "second", &second, &error));
  put(second, "a", "9");
  put(second, "b", "8");
  const windrow_keyspace* both[2] = {keyspace, second};
  OK(windrow_cursor_open_merged(db, both, 2, everything, &cursor, &error));
  check_scan(cursor, false, "a=9 b=2 b=8 ");
  check_scan(cursor, true, "b=8 b=2 a=9 ");
  OK(windrow_cursor_seek(cursor, text("b"), &valid, &error));
  CHECK(valid && windrow_cursor_keyspace(cursor) == 0);
  CHECK(windrow_cursor_expires_at(cursor) == WINDROW_EXPIRY_NEVER);
  OK(windrow_cursor_next(cursor, &valid, &error));
  CHECK(valid && windrow_cursor_keyspace(cursor) == 1);
  windrow_cursor_free(cursor);
  OK(windrow_cursor_open_merged(db, both, 2, between("b", "c"), &cursor, &error));
  check_scan(cursor, false, "b=2 b=8 ");
  windrow_cursor_free(cursor);
  both[1] = NULL;
  NULLS(windrow_cursor_open_merged(db, both, 2, everything, &cursor, &error));
  windrow_keyspace_free(second);
  windrow_keyspace_free(keyspace);
}

/* Writes a batch down as text. */
static bool describe(void* state, const windrow_write* write) {
  char* seen = state;
  size_t length = strlen(seen);
  const char* expiry = write->expiry == WINDROW_EXPIRY_NEVER ? "" : "!";
  snprintf(seen + length, 256 - length, "%.*s:%u:%.*s=%.*s%s ", (int)write->keyspace.length,
           write->keyspace.data, (unsigned)write->kind, (int)write->key.length, write->key.data,
           (int)write->value.length, write->value.data == NULL ? (const uint8_t*)"" : write->value.data,
           expiry);
  return length < 200;
}

static void test_portable_batches(windrow_database* db) {
  char seen[256] = "";
  windrow_keyspace *keyspace, *counters;
  windrow_batch *batch = windrow_batch_new(), *copy = (windrow_batch*)1;
  windrow_value* bytes;
  OK(windrow_keyspace_open(db, "carried", &keyspace, &error));
  OK(windrow_keyspace_open(db, "counters", &counters, &error));
  OK(windrow_batch_put(batch, keyspace, text("a"), text("1"), &error));
  OK(windrow_batch_put_with_ttl(batch, keyspace, text("b"), text("2"), LONG, &error));
  OK(windrow_batch_delete(batch, keyspace, text("c"), &error));
  OK(windrow_batch_merge(batch, counters, text("d"), text("4"), &error));
  OK(windrow_batch_delete_range(batch, keyspace, between("e", "f"), &error));
  OK(windrow_batch_to_bytes(batch, &bytes, &error));
  windrow_batch_free(batch);
  OK(windrow_batch_from_bytes(db, windrow_value_bytes(bytes), &copy, &error));
  CHECK(windrow_batch_count(copy) == 5);
  OK(windrow_batch_visit(copy, describe, seen, &error));
  CHECK(strcmp(seen, "carried:0:a=1 carried:0:b=2! carried:1:c= counters:2:d=4 carried:3:e=f ") == 0);
  NULLS(windrow_batch_visit(copy, NULL, NULL, &error));
  OK(windrow_batch_write(db, copy, WINDROW_DURABILITY_DEFAULT, &error));
  windrow_batch_free(copy);
  check_get(keyspace, NULL, "b", "2");
  check_get(counters, NULL, "d", "4");
  windrow_bytes cut = windrow_value_bytes(bytes);
  cut.length--;
  FAILS(WINDROW_CORRUPTION, "", windrow_batch_from_bytes(db, cut, &copy, &error));
  CHECK(copy == NULL);
  windrow_value_free(bytes);
  windrow_keyspace_free(keyspace);
  windrow_keyspace_free(counters);
}

static windrow_database* test_prepared(windrow_database* db) {
  char* names;
  windrow_keyspace* keyspace;
  windrow_transaction* transaction;
  OK(windrow_keyspace_open(db, "accounts", &keyspace, &error));
  put(keyspace, "ada", "10");
  for (int number = 0; number < 2; number++) {
    OK(windrow_transaction_begin(db, WINDROW_ISOLATION_SERIALIZABLE, &transaction, &error));
    OK(windrow_transaction_put(transaction, keyspace, text(number == 0 ? "ada" : "bob"), text("11"),
                               &error));
    OK(windrow_transaction_prepare(transaction, number == 0 ? "first" : "second", &error));
  }
  OK(windrow_transaction_begin(db, WINDROW_ISOLATION_SERIALIZABLE, &transaction, &error));
  FAILS(WINDROW_ALREADY_EXISTS, "first", windrow_transaction_prepare(transaction, "first", &error));
  FAILS(WINDROW_CONFLICT, "ada", windrow_put(keyspace, text("ada"), text("12"), 0, &error));
  check_get(keyspace, NULL, "ada", "10");
  windrow_keyspace_free(keyspace);
  OK(windrow_close(db, &error));

  OK(windrow_open(in_folder("db"), NULL, &db, &error));
  OK(windrow_keyspace_open(db, "accounts", &keyspace, &error));
  OK(windrow_prepared_names_json(db, &names, &error));
  CHECK(strcmp(names, "[\"first\",\"second\"]") == 0);
  windrow_text_free(names);
  check_get(keyspace, NULL, "ada", "10");
  OK(windrow_commit_prepared(db, "first", WINDROW_DURABILITY_SYNC, &error));
  OK(windrow_roll_back_prepared(db, "second", WINDROW_DURABILITY_DEFAULT, &error));
  FAILS(WINDROW_NOT_FOUND, "first", windrow_commit_prepared(db, "first", 0, &error));
  FAILS(WINDROW_NOT_FOUND, "second", windrow_roll_back_prepared(db, "second", 0, &error));
  check_get(keyspace, NULL, "ada", "11");
  check_get(keyspace, NULL, "bob", NULL);
  windrow_keyspace_free(keyspace);
  return db;
}

/* What the callbacks count, from any thread. */
struct calls {
  int merges, decisions, events, flushes, freed;
};

static void free_calls(void* state) { ((struct calls*)state)->freed++; }

/* The longest of some words; "bad" is none. */
static int32_t longest(void* state, windrow_bytes key, windrow_bytes base,
                       const windrow_bytes* operands, size_t count, windrow_sink* result) {
  windrow_bytes found = base;
  __atomic_fetch_add(&((struct calls*)state)->merges, 1, __ATOMIC_SEQ_CST);
  CHECK(key.length == 1 && count > 0);
  for (size_t number = 0; number < count; number++) {
    if (is(operands[number], "bad")) {
      windrow_sink_fail(result, text("lost"));
      windrow_sink_fail(result, text("bad is no word"));
      windrow_sink_fail(result, WINDROW_BYTES(NULL, 1));
      return 7;
    }
    if (is(operands[number], "odd")) return 7;
    if (operands[number].length > found.length) found = operands[number];
  }
  windrow_sink_fail(result, text("this has not failed"));
  CHECK(windrow_sink_append(result, found));
  CHECK(windrow_sink_append(result, none));
  CHECK(!windrow_sink_append(result, WINDROW_BYTES(NULL, 1)));
  return WINDROW_MERGE_DONE;
}

static int32_t longest_operand(void* state, windrow_bytes key, const windrow_bytes* operands,
                               size_t count, windrow_sink* result) {
  if (is(key, "k")) return WINDROW_MERGE_NOT;
  return longest(state, key, operands[0], operands + 1, count - 1, result);
}

/* Removes what begins with r, replaces what begins with p, and fails for the rest but k. */
static int32_t decide(void* state, const windrow_candidate* candidate, windrow_sink* replacement) {
  windrow_bytes value;
  __atomic_fetch_add(&((struct calls*)state)->decisions, 1, __ATOMIC_SEQ_CST);
  CHECK(windrow_candidate_expires_at(candidate) == WINDROW_EXPIRY_NEVER);
  CHECK(windrow_candidate_value_length(candidate) >= 1);
  OK(windrow_candidate_value(candidate, &value, &error));
  CHECK(value.length == windrow_candidate_value_length(candidate));
  switch (windrow_candidate_key(candidate).data[0]) {
    case 'k': return WINDROW_FILTER_KEEP;
    case 'r': return WINDROW_FILTER_REMOVE;
    case 'p':
      CHECK(windrow_sink_append(replacement, text("put")));
      return WINDROW_FILTER_REPLACE;
    default: return 99;
  }
}

static void count_event(void* state, const char* event) {
  struct calls* calls = state;
  __atomic_fetch_add(&calls->events, 1, __ATOMIC_SEQ_CST);
  if (strstr(event, "\"event\":\"flush_ended\"") != NULL) {
    CHECK(strstr(event, "\"keyspace\":\"") != NULL && strstr(event, "\"duration\":{\"secs\"") != NULL);
    __atomic_fetch_add(&calls->flushes, 1, __ATOMIC_SEQ_CST);
  }
}

static void test_callbacks(void) {
  struct calls merges = {0}, filter = {0}, listener = {0}, unused = {0};
  windrow_options* options = windrow_options_new();
  windrow_database* db;
  windrow_keyspace *words, *filtered;
  windrow_value* value;
  OK(windrow_options_set_merge_callbacks(options, "words", "test.longest", longest, longest_operand,
                                         &merges, free_calls, &error));
  OK(windrow_options_set_compaction_filter(options, "filtered", "test.filter", decide, &filter,
                                           free_calls, &error));
  OK(windrow_options_set_listener(options, count_event, &listener, free_calls, &error));
  NULLS(windrow_options_set_merge_callbacks(options, "words", "a", NULL, NULL, &unused, free_calls,
                                            &error));
  NULLS(windrow_options_set_compaction_filter(options, "a", "a", NULL, &unused, free_calls, &error));
  NULLS(windrow_options_set_listener(options, NULL, &unused, free_calls, &error));
  CHECK(unused.freed == 3);
  OK(windrow_open(in_folder("callbacks"), options, &db, &error));
  windrow_options_free(options);
  CHECK(merges.freed == 0 && filter.freed == 0 && listener.freed == 0);

  OK(windrow_keyspace_open(db, "words", &words, &error));
  const char* keys[4] = {"k", "w", "x", "y"};
  const char* last[4] = {"row", "row", "bad", "odd"};
  for (int number = 0; number < 4; number++) {
    OK(windrow_merge(words, text(keys[number]), text("wind"), 0, &error));
    OK(windrow_merge(words, text(keys[number]), text("windrow"), 0, &error));
    OK(windrow_merge(words, text(keys[number]), text(last[number]), 0, &error));
  }
  check_get(words, NULL, "k", "windrow");
  FAILS(WINDROW_MERGE, "bad is no word", windrow_get(words, NULL, text("x"), &value, &error));
  FAILS(WINDROW_MERGE, "the operator returned 7", windrow_get(words, NULL, text("y"), &value, &error));
  OK(windrow_keyspace_open(db, "filtered", &filtered, &error));
  put(filtered, "keep", "1");
  put(filtered, "remove", "2");
  put(filtered, "put", "3");
  put(filtered, "unknown", "4");
  OK(windrow_compact_range(words, everything, &error));
  OK(windrow_compact_range(filtered, everything, &error));
  OK(windrow_wait_idle(db, &error));
  check_get(words, NULL, "w", "windrow");
  check_get(words, NULL, "k", "windrow");
  FAILS(WINDROW_MERGE, "bad is no word", windrow_get(words, NULL, text("x"), &value, &error));
  check_get(filtered, NULL, "keep", "1");
  check_get(filtered, NULL, "remove", NULL);
  check_get(filtered, NULL, "put", "put");
  check_get(filtered, NULL, "unknown", "4");
  CHECK(merges.merges > 0 && filter.decisions >= 4 && listener.flushes >= 2);
  CHECK(listener.events > listener.flushes);
  windrow_keyspace_free(words);
  windrow_keyspace_free(filtered);
  OK(windrow_close(db, &error));
  CHECK(merges.freed == 1 && filter.freed == 1 && listener.freed == 1);

  /* Without the operator its keys are errors, and all others are there. */
  OK(windrow_open(in_folder("callbacks"), NULL, &db, &error));
  OK(windrow_keyspace_open(db, "words", &words, &error));
  FAILS(WINDROW_MERGE, "test.longest", windrow_get(words, NULL, text("x"), &value, &error));
  check_get(words, NULL, "w", "windrow");
  windrow_keyspace_free(words);
  OK(windrow_close(db, &error));
}

/* A source of the entries 000=v to before `end`. */
struct numbers {
  int next, end, code;
  char key[8];
};

static int32_t next_number(void* state, windrow_bytes* key, windrow_bytes* value) {
  struct numbers* numbers = state;
  if (numbers->next == numbers->end) return numbers->code;
  snprintf(numbers->key, sizeof numbers->key, "%03d", numbers->next++ % 1000);
  *key = text(numbers->key);
  *value = text("v");
  return WINDROW_SOURCE_ENTRY;
}

/* A source that waits for the end of its own load. */
static int32_t wait_in_source(void* state, windrow_bytes* key, windrow_bytes* value) {
  (void)key, (void)value;
  return windrow_wait_idle(state, NULL) + 1000;
}

static void test_loads(windrow_database* db) {
  uint64_t count = 7;
  windrow_keyspace* keyspace;
  windrow_table_writer* writer;
  struct numbers numbers = {0, 100, WINDROW_SOURCE_END, ""};
  OK(windrow_keyspace_open(db, "loaded", &keyspace, &error));
  OK(windrow_bulk_load(keyspace, next_number, &numbers, &count, &error));
  CHECK(count == 100);
  check_get(keyspace, NULL, "099", "v");
  struct numbers failing = {100, 200, 42, ""};
  FAILS(WINDROW_INVALID_ARGUMENT, "the source of the entries returned 42",
        windrow_bulk_load(keyspace, next_number, &failing, &count, &error));
  CHECK(count == 0);
  check_get(keyspace, NULL, "100", NULL);
  struct numbers twice = {900, 1100, WINDROW_SOURCE_END, ""};
  FAILS(WINDROW_INVALID_ARGUMENT, "000",
        windrow_bulk_load(keyspace, next_number, &twice, &count, &error));
  twice.next = 900;
  OK(windrow_bulk_load_unsorted(keyspace, next_number, &twice, 1 << 20, &count, &error));
  CHECK(count == 200);
  check_get(keyspace, NULL, "999", "v");
  FAILS(WINDROW_INVALID_ARGUMENT, "the source of the entries returned 1001",
        windrow_bulk_load(keyspace, wait_in_source, db, &count, &error));
  OK(windrow_wait_idle(db, &error));
  NULLS(windrow_bulk_load(keyspace, NULL, NULL, &count, &error));
  NULLS(windrow_bulk_load_unsorted(NULL, next_number, &twice, 1 << 20, NULL, &error));

  OK(windrow_table_writer_create(in_folder("one.table"), NULL, &writer, &error));
  OK(windrow_table_writer_put(writer, text("a"), text("1"), &error));
  OK(windrow_table_writer_delete(writer, text("b"), &error));
  FAILS(WINDROW_INVALID_ARGUMENT, "b",
        windrow_table_writer_put(writer, text("a"), text("1"), &error));
  OK(windrow_table_writer_finish(writer, &count, &error));
  CHECK(count == 2);
  OK(windrow_table_writer_create(in_folder("two.table"), NULL, &writer, &error));
  windrow_table_writer_free(writer);
  put(keyspace, "b", "2");
  const windrow_keyspace* keyspaces[1] = {keyspace};
  const char* files[1] = {in_folder("one.table")};
  OK(windrow_ingest(db, keyspaces, files, 1, &count, &error));
  CHECK(count == 2);
  check_get(keyspace, NULL, "a", "1");
  check_get(keyspace, NULL, "b", NULL);
  OK(windrow_ingest(db, NULL, NULL, 0, NULL, &error));
  FAILS(WINDROW_INVALID_ARGUMENT, "no array", windrow_ingest(db, NULL, files, 1, NULL, &error));
  keyspaces[0] = NULL;
  NULLS(windrow_ingest(db, keyspaces, files, 1, NULL, &error));
  windrow_keyspace_free(keyspace);
}

/* Null for every pointer of every function. */
static void test_null(void) {
  NULLS(windrow_open(NULL, NULL, NULL, &error));
  NULLS(windrow_open_read_only(NULL, NULL, NULL, &error));
  NULLS(windrow_destroy(NULL, &error));
  NULLS(windrow_persist(NULL, &error));
  NULLS(windrow_flush(NULL, &error));
  NULLS(windrow_wait_idle(NULL, &error));
  NULLS(windrow_verify(NULL, &error));
  NULLS(windrow_checkpoint(NULL, "", &error));
  NULLS(windrow_backups_open(NULL, 0, NULL, &error));
  NULLS(windrow_backups_open_read_only(NULL, 0, NULL, &error));
  NULLS(windrow_backup(NULL, NULL, NULL, &error));
  NULLS(windrow_backups_list_json(NULL, NULL, &error));
  NULLS(windrow_backups_verify(NULL, &error));
  NULLS(windrow_backups_restore(NULL, 1, "", &error));
  NULLS(windrow_backups_keep_newest(NULL, 1, NULL, &error));
  NULLS(windrow_backups_remove_older(NULL, 1, NULL, &error));
  NULLS(windrow_backups_remove(NULL, 1, &error));
  windrow_backups_free(NULL);
  NULLS(windrow_changes_open(NULL, 1, NULL, &error));
  NULLS(windrow_changes_next(NULL, 0, NULL, &error));
  CHECK(windrow_changes_position(NULL) == 0);
  windrow_changes_free(NULL);
  CHECK(windrow_change_kind(NULL) == 0);
  CHECK(windrow_change_sequence(NULL) == 0);
  CHECK(windrow_change_first_sequence(NULL) == 0);
  CHECK(windrow_change_count(NULL) == 0);
  CHECK(windrow_change_keyspace(NULL, 0).data == NULL);
  NULLS(windrow_change_visit(NULL, describe, NULL, &error));
  NULLS(windrow_change_to_bytes(NULL, NULL, &error));
  windrow_change_free(NULL);
  NULLS(windrow_consumer_open(NULL, "a", NULL, &error));
  NULLS(windrow_consumer_changes(NULL, NULL, &error));
  NULLS(windrow_consumer_acknowledged(NULL, NULL, &error));
  NULLS(windrow_consumer_acknowledge(NULL, 1, &error));
  NULLS(windrow_consumer_remove(NULL, "a", &error));
  NULLS(windrow_consumers_json(NULL, NULL, &error));
  windrow_consumer_free(NULL);
  NULLS(windrow_open_secondary(NULL, NULL, NULL, &error));
  NULLS(windrow_secondary_database(NULL, NULL, &error));
  NULLS(windrow_secondary_catch_up(NULL, NULL, &error));
  NULLS(windrow_secondary_follow(NULL, 1, &error));
  windrow_secondary_free(NULL);
  NULLS(windrow_stats_json(NULL, NULL, &error));
  NULLS(windrow_keyspace_names_json(NULL, NULL, &error));
  NULLS(windrow_keyspace_open(NULL, "a", NULL, &error));
  NULLS(windrow_keyspace_open(NULL, NULL, NULL, &error));
  NULLS(windrow_keyspace_open_with(NULL, "a", NULL, NULL, &error));
  NULLS(windrow_keyspace_open_existing(NULL, "a", NULL, &error));
  NULLS(windrow_keyspace_drop(NULL, "a", &error));
  NULLS(windrow_keyspaces_swap(NULL, "a", "b", &error));
  NULLS(windrow_keyspace_rename(NULL, "a", &error));
  NULLS(windrow_snapshot_new(NULL, NULL, &error));
  NULLS(windrow_put(NULL, text("a"), none, 0, &error));
  NULLS(windrow_delete(NULL, text("a"), 0, &error));
  NULLS(windrow_delete_range(NULL, everything, 0, &error));
  NULLS(windrow_merge(NULL, text("a"), none, 0, &error));
  NULLS(windrow_get(NULL, NULL, text("a"), NULL, &error));
  NULLS(windrow_contains(NULL, NULL, text("a"), NULL, &error));
  NULLS(windrow_compare_and_swap(NULL, text("a"), none, none, NULL, &error));
  NULLS(windrow_put_with_ttl(NULL, text("a"), none, 1, 0, &error));
  NULLS(windrow_expires_at(NULL, NULL, text("a"), NULL, &error));
  NULLS(windrow_put_if_absent(NULL, text("a"), none, NULL, &error));
  NULLS(windrow_take(NULL, text("a"), NULL, &error));
  NULLS(windrow_multi_get(NULL, NULL, NULL, NULL, 0, &error));
  NULLS(windrow_cursor_open_merged(NULL, NULL, 0, everything, NULL, &error));
  NULLS(windrow_batch_put_with_ttl(NULL, NULL, none, none, 1, &error));
  NULLS(windrow_batch_to_bytes(NULL, NULL, &error));
  NULLS(windrow_batch_from_bytes(NULL, none, NULL, &error));
  NULLS(windrow_batch_visit(NULL, describe, NULL, &error));
  NULLS(windrow_transaction_put_with_ttl(NULL, NULL, none, none, 1, &error));
  NULLS(windrow_transaction_expires_at(NULL, NULL, none, NULL, &error));
  NULLS(windrow_transaction_prepare(NULL, "a", &error));
  NULLS(windrow_prepared_names_json(NULL, NULL, &error));
  NULLS(windrow_commit_prepared(NULL, "a", 0, &error));
  NULLS(windrow_roll_back_prepared(NULL, "a", 0, &error));
  NULLS(windrow_options_set_merge_callbacks(NULL, "a", "b", longest, NULL, NULL, NULL, &error));
  NULLS(windrow_options_set_compaction_filter(NULL, "a", "b", decide, NULL, NULL, &error));
  NULLS(windrow_options_set_listener(NULL, count_event, NULL, NULL, &error));
  NULLS(windrow_candidate_value(NULL, NULL, &error));
  NULLS(windrow_compact_range(NULL, everything, &error));
  NULLS(windrow_approximate_count(NULL, everything, NULL, &error));
  NULLS(windrow_approximate_bytes(NULL, everything, NULL, &error));
  NULLS(windrow_cursor_open(NULL, NULL, everything, NULL, &error));
  NULLS(windrow_cursor_open_prefix(NULL, NULL, none, NULL, &error));
  NULLS(windrow_cursor_seek_to_first(NULL, NULL, &error));
  NULLS(windrow_cursor_seek_to_last(NULL, NULL, &error));
  NULLS(windrow_cursor_seek(NULL, none, NULL, &error));
  NULLS(windrow_cursor_next(NULL, NULL, &error));
  NULLS(windrow_cursor_prev(NULL, NULL, &error));
  NULLS(windrow_cursor_value(NULL, NULL, &error));
  NULLS(windrow_batch_put(NULL, NULL, none, none, &error));
  NULLS(windrow_batch_delete(NULL, NULL, none, &error));
  NULLS(windrow_batch_delete_range(NULL, NULL, everything, &error));
  NULLS(windrow_batch_merge(NULL, NULL, none, none, &error));
  NULLS(windrow_batch_write(NULL, NULL, 0, &error));
  NULLS(windrow_transaction_begin(NULL, 0, NULL, &error));
  NULLS(windrow_transaction_begin_locking(NULL, 0, NULL, &error));
  NULLS(windrow_transaction_get(NULL, NULL, text("a"), 0, NULL, &error));
  NULLS(windrow_transaction_put(NULL, NULL, none, none, &error));
  NULLS(windrow_transaction_delete(NULL, NULL, none, &error));
  NULLS(windrow_transaction_merge(NULL, NULL, none, none, &error));
  NULLS(windrow_transaction_delete_range(NULL, NULL, everything, &error));
  NULLS(windrow_transaction_savepoint(NULL, NULL, &error));
  NULLS(windrow_transaction_roll_back_to(NULL, 1, &error));
  NULLS(windrow_transaction_commit(NULL, 0, &error));
  NULLS(windrow_transaction_cursor_open(NULL, NULL, everything, NULL, &error));
  NULLS(windrow_transaction_cursor_open_prefix(NULL, NULL, none, NULL, &error));
  NULLS(windrow_table_writer_create(NULL, NULL, NULL, &error));
  NULLS(windrow_table_writer_put(NULL, none, none, &error));
  NULLS(windrow_table_writer_delete(NULL, none, &error));
  NULLS(windrow_table_writer_finish(NULL, NULL, &error));
  NULLS(windrow_ingest(NULL, NULL, NULL, 0, NULL, &error));
  NULLS(windrow_options_set_merge_operator(NULL, "a", "b", &error));
  NULLS(windrow_options_set(NULL, "log", "true", &error));
  char* no_text = (char*)1;
  NULLS(windrow_keyspace_name(NULL, &no_text, &error));
  CHECK(no_text == NULL);
  NULLS(windrow_keyspace_options_json(NULL, &no_text, &error));
  NULLS(windrow_keyspace_options_set(NULL, "scaling", "1", &error));
  OK(windrow_close(NULL, &error));
  windrow_database_free(NULL);
  windrow_options_set_keyspace(NULL, NULL);
  windrow_options_set_sync(NULL, true);
  windrow_options_set_change_retention_bytes(NULL, 1);
  windrow_options_set_change_retention_idle(NULL, 1);
  windrow_keyspace_options_set_scaling(NULL, 1);
  windrow_keyspace_options_set_default_ttl(NULL, 1);
  windrow_options_free(NULL);
  windrow_keyspace_options_free(NULL);
  windrow_keyspace_free(NULL);
  windrow_snapshot_free(NULL);
  CHECK(windrow_snapshot_sequence(NULL) == 0);
  windrow_value_free(NULL);
  windrow_text_free(NULL);
  windrow_cursor_free(NULL);
  windrow_batch_free(NULL);
  windrow_batch_clear(NULL);
  windrow_transaction_roll_back(NULL);
  windrow_table_writer_free(NULL);
  windrow_error_free(NULL);
  CHECK(windrow_batch_count(NULL) == 0);
  CHECK(!windrow_cursor_is_valid(NULL));
  CHECK(windrow_cursor_key(NULL).data == NULL);
  CHECK(windrow_cursor_keyspace(NULL) == 0);
  CHECK(windrow_cursor_expires_at(NULL) == WINDROW_EXPIRY_ABSENT);
  CHECK(windrow_candidate_key(NULL).data == NULL);
  CHECK(windrow_candidate_value_length(NULL) == 0);
  CHECK(windrow_candidate_expires_at(NULL) == WINDROW_EXPIRY_ABSENT);
  CHECK(!windrow_sink_append(NULL, none));
  windrow_sink_fail(NULL, none);
  CHECK(windrow_value_bytes(NULL).length == 0);
  CHECK(windrow_error_code(NULL) == WINDROW_OK);
  CHECK(windrow_error_message(NULL)[0] == 0);
  CHECK(windrow_error_keyspace(NULL) == NULL);
  CHECK(windrow_error_key(NULL).length == 0);
}

/* The value of "backed" in the database that backup `number` gives. */
static void check_restored(const windrow_backups* backups, uint64_t number, const char* expected) {
  windrow_database* copy;
  windrow_keyspace* keyspace;
  OK(windrow_backups_restore(backups, number, in_folder("restored"), &error));
  FAILS(WINDROW_ALREADY_EXISTS, "not empty",
        windrow_backups_restore(backups, number, in_folder("restored"), &error));
  OK(windrow_open_read_only(in_folder("restored"), NULL, &copy, &error));
  OK(windrow_keyspace_open(copy, "backed", &keyspace, &error));
  check_get(keyspace, NULL, "backed", expected);
  windrow_keyspace_free(keyspace);
  OK(windrow_close(copy, &error));
  OK(windrow_destroy(in_folder("restored"), &error));
}

static void test_backups(windrow_database* db) {
  windrow_backups* backups;
  windrow_backups* second = (windrow_backups*)1;
  windrow_keyspace* keyspace;
  uint64_t number;
  char* json;
  FAILS(WINDROW_NOT_FOUND, "no backups",
        windrow_backups_open_read_only(in_folder("backups"), 0, &second, &error));
  CHECK(second == NULL);
  OK(windrow_backups_open(in_folder("backups"), 0, &backups, &error));
  FAILS(WINDROW_LOCKED, "in use", windrow_backups_open(in_folder("backups"), 0, &second, &error));
  FAILS(WINDROW_NOT_FOUND, "no backups",
        windrow_backups_restore(backups, WINDROW_BACKUP_NEWEST, in_folder("restored"), &error));
  OK(windrow_keyspace_open(db, "backed", &keyspace, &error));
  put(keyspace, "backed", "first");
  OK(windrow_backup(db, backups, &number, &error));
  CHECK(number == 1);
  put(keyspace, "backed", "second");
  OK(windrow_backup(db, backups, NULL, &error));
  put(keyspace, "backed", "third");
  OK(windrow_backup(db, backups, &number, &error));
  CHECK(number == 3);
  OK(windrow_backups_verify(backups, &error));
  check_restored(backups, 1, "first");
  check_restored(backups, WINDROW_BACKUP_NEWEST, "third");

  OK(windrow_backups_list_json(backups, NULL, &error));
  OK(windrow_backups_list_json(backups, &json, &error));
  CHECK(json[0] == '[' && strstr(json, "\"number\":2") != NULL);
  CHECK(strstr(json, "\"created\":1") != NULL && strstr(json, "\"own_bytes\":") != NULL);
  windrow_text_free(json);

  OK(windrow_backups_remove_older(backups, 3600000, &number, &error));
  CHECK(number == 0);
  OK(windrow_backups_keep_newest(backups, SIZE_MAX, &number, &error));
  CHECK(number == 0);
  FAILS(WINDROW_INVALID_ARGUMENT, "newest", windrow_backups_keep_newest(backups, 0, NULL, &error));
  OK(windrow_backups_keep_newest(backups, 2, &number, &error));
  CHECK(number == 1);
  FAILS(WINDROW_NOT_FOUND, "backup 1", windrow_backups_remove(backups, 1, &error));
  OK(windrow_backups_remove(backups, WINDROW_BACKUP_NEWEST, &error));
  windrow_backups_free(backups);

  OK(windrow_backups_open_read_only(in_folder("backups"), 1 << 30, &backups, &error));
  OK(windrow_backups_open_read_only(in_folder("backups"), 0, &second, &error));
  windrow_backups_free(second);
  check_restored(backups, WINDROW_BACKUP_NEWEST, "second");
  number = 7;
  FAILS(WINDROW_READ_ONLY, "reading", windrow_backup(db, backups, &number, &error));
  CHECK(number == 0);
  FAILS(WINDROW_READ_ONLY, "reading", windrow_backups_remove(backups, 2, &error));
  windrow_backups_free(backups);

  /* A damaged byte is named by the check and by a restore. */
  FILE* manifest = fopen(in_folder("backups/000002.backup"), "r+b");
  CHECK(manifest != NULL && fseek(manifest, 20, SEEK_SET) == 0);
  int byte = fgetc(manifest);
  CHECK(fseek(manifest, 20, SEEK_SET) == 0 && fputc(byte ^ 1, manifest) != EOF);
  CHECK(fclose(manifest) == 0);
  OK(windrow_backups_open(in_folder("backups"), 0, &backups, &error));
  FAILS(WINDROW_CORRUPTION, "000002.backup", windrow_backups_verify(backups, &error));
  OK(windrow_backups_verify_json(backups, &json, &error));
  CHECK(strstr(json, "\"backups\":[2]") != NULL && strstr(json, "000002.backup") != NULL);
  windrow_text_free(json);
  FAILS(WINDROW_CORRUPTION, "backup 2",
        windrow_backups_restore(backups, 2, in_folder("restored"), &error));
  OK(windrow_backups_list_json(backups, &json, &error));
  CHECK(strstr(json, "\"code\":7") != NULL && strstr(json, "000002.backup") != NULL);
  windrow_text_free(json);
  OK(windrow_backups_remove(backups, 2, &error));
  OK(windrow_backups_list_json(backups, &json, &error));
  CHECK(strcmp(json, "[]") == 0);
  windrow_text_free(json);
  windrow_backups_free(backups);
  windrow_keyspace_free(keyspace);
}

/* The next change as text: its kind, its keyspaces, and its writes; "none" without one. */
static const char* next_change(windrow_changes* changes, uint64_t* sequence) {
  static char seen[256];
  windrow_change* change = (windrow_change*)1;
  windrow_bytes name;
  OK(windrow_changes_next(changes, 0, &change, &error));
  if (change == NULL) return "none";
  snprintf(seen, sizeof seen, "%u ", (unsigned)windrow_change_kind(change));
  for (size_t number = 0; (name = windrow_change_keyspace(change, number)).data != NULL; number++) {
    size_t length = strlen(seen);
    snprintf(seen + length, sizeof seen - length, "%.*s ", (int)name.length, name.data);
  }
  OK(windrow_change_visit(change, describe, seen, &error));
  *sequence = windrow_change_sequence(change);
  CHECK(windrow_change_first_sequence(change) + windrow_change_count(change) <= *sequence + 1);
  CHECK(windrow_changes_position(changes) == *sequence + 1);
  windrow_change_free(change);
  return seen;
}

#define NEXT(changes, expected)                                                               \
  do {                                                                                        \
    const char* seen = next_change(changes, &sequence);                                       \
    if (strcmp(seen, expected) != 0) {                                                        \
      fprintf(stderr, "%s:%d: \"%s\", expected \"%s\"\n", __FILE__, __LINE__, seen, expected); \
      exit(1);                                                                                \
    }                                                                                         \
  } while (0)

static windrow_database* open_feed(uint64_t retained) {
  windrow_database* db;
  windrow_keyspace_options* keyspace_options;
  windrow_options* options = windrow_options_new();
  OK(windrow_keyspace_options_new(WINDROW_PRESET_BALANCED, &keyspace_options, &error));
  windrow_keyspace_options_set_memtable_bytes(keyspace_options, 64 << 10);
  windrow_options_set_keyspace(options, keyspace_options);
  windrow_options_set_change_retention_bytes(options, retained);
  OK(windrow_options_set_merge_operator(options, "lists", "windrow.append.2c", &error));
  OK(windrow_open(in_folder("feed"), options, &db, &error));
  windrow_keyspace_options_free(keyspace_options);
  windrow_options_free(options);
  return db;
}

/* Each change comes once, in the order of the commits, with all that it has. */
static void test_changes(void) {
  windrow_database* db = open_feed(1 << 30);
  windrow_consumer* consumer = (windrow_consumer*)1;
  windrow_changes *changes = (windrow_changes*)1, *again;
  windrow_change* change;
  windrow_keyspace *users, *lists;
  windrow_batch* batch = windrow_batch_new();
  windrow_value* bytes = (windrow_value*)1;
  uint64_t sequence, count;
  char* json;
  FAILS(WINDROW_INVALID_ARGUMENT, "name", windrow_consumer_open(db, "", &consumer, &error));
  CHECK(consumer == NULL);
  OK(windrow_consumer_open(db, "copy", &consumer, &error));
  OK(windrow_consumer_changes(consumer, &changes, &error));
  NEXT(changes, "none");
  OK(windrow_keyspace_open(db, "users", &users, &error));
  OK(windrow_keyspace_open(db, "lists", &lists, &error));
  put(users, "a", "1");
  OK(windrow_batch_put(batch, users, text("b"), text("2"), &error));
  OK(windrow_batch_put_with_ttl(batch, users, text("c"), text("3"), LONG, &error));
  OK(windrow_batch_delete(batch, users, text("a"), &error));
  OK(windrow_batch_merge(batch, lists, text("d"), text("4"), &error));
  OK(windrow_batch_delete_range(batch, users, between("e", "f"), &error));
  OK(windrow_batch_write(db, batch, WINDROW_DURABILITY_DEFAULT, &error));
  OK(windrow_keyspace_rename(users, "people", &error));
  NEXT(changes, "2 users ");
  NEXT(changes, "2 lists ");
  NEXT(changes, "1 users:0:a=1 ");
  /* The batch as bytes, and what only batches have. */
  OK(windrow_changes_next(changes, 0, &change, &error));
  CHECK(windrow_change_count(change) == 5 && windrow_change_keyspace(change, 0).data == NULL);
  CHECK(windrow_change_sequence(change) == windrow_change_first_sequence(change) + 4);
  NULLS(windrow_change_visit(change, NULL, NULL, &error));
  OK(windrow_change_to_bytes(change, NULL, &error));
  OK(windrow_change_to_bytes(change, &bytes, &error));
  uint64_t first = windrow_change_first_sequence(change);
  windrow_change_free(change);
  windrow_batch_free(batch);
  /* A feed without a consumer, from within the batch. */
  OK(windrow_changes_open(db, first + 2, &again, &error));
  NEXT(again, "1 users:0:b=2 users:0:c=3! users:1:a= lists:2:d=4 users:3:e=f ");
  CHECK(windrow_changes_position(again) == first + 5);
  windrow_changes_free(again);
  OK(windrow_changes_next(changes, 0, &change, &error));
  CHECK(windrow_change_kind(change) == WINDROW_CHANGE_KEYSPACE_RENAMED);
  CHECK(windrow_change_count(change) == 0 && is(windrow_change_keyspace(change, 1), "people"));
  windrow_value* no_bytes = (windrow_value*)1;
  FAILS(WINDROW_INVALID_ARGUMENT, "no batch", windrow_change_to_bytes(change, &no_bytes, &error));
  CHECK(no_bytes == NULL);
  windrow_change_free(change);
  NEXT(changes, "none");
  FAILS(WINDROW_CORRUPTION, "", windrow_batch_from_bytes(db, text("changes"), NULL, &error));
  FAILS(WINDROW_NOT_FOUND, "users",
        windrow_batch_from_bytes(db, windrow_value_bytes(bytes), NULL, &error));
  windrow_value_free(bytes);

  windrow_snapshot* snapshot;
  OK(windrow_snapshot_new(db, &snapshot, &error));
  CHECK(windrow_changes_position(changes) == windrow_snapshot_sequence(snapshot) + 1);
  FAILS(WINDROW_INVALID_ARGUMENT, "newest",
        windrow_changes_open(db, windrow_snapshot_sequence(snapshot) + 2, &again, &error));
  CHECK(again == NULL);
  FAILS(WINDROW_INVALID_ARGUMENT, "newest",
        windrow_consumer_acknowledge(consumer, windrow_snapshot_sequence(snapshot) + 1, &error));
  windrow_snapshot_free(snapshot);

  /* The place of the consumer survives. */
  OK(windrow_consumer_acknowledge(consumer, first + 4, &error));
  windrow_changes_free(changes);
  windrow_consumer_free(consumer);
  OK(windrow_keyspace_drop(db, "lists", &error));
  windrow_keyspace_free(users);
  windrow_keyspace_free(lists);
  OK(windrow_close(db, &error));
  db = open_feed(100 << 10);
  OK(windrow_consumer_open(db, "copy", &consumer, &error));
  OK(windrow_consumer_acknowledged(consumer, &count, &error));
  CHECK(count == first + 4);
  OK(windrow_consumer_changes(consumer, &changes, &error));
  NEXT(changes, "4 users people ");
  NEXT(changes, "3 lists ");
  NEXT(changes, "none");
  OK(windrow_consumers_json(db, &json, &error));
  CHECK(strstr(json, "\"name\":\"copy\"") && strstr(json, "\"is_behind\":false"));
  CHECK(strstr(json, "\"held_bytes\":"));
  windrow_text_free(json);

  /* It falls behind, and begins again. */
  OK(windrow_keyspace_open(db, "people", &users, &error));
  char value[1000] = "";
  memset(value, 'v', sizeof value - 1);
  for (bool is_behind = false; !is_behind;) {
    for (int number = 0; number < 50; number++) put(users, "f", value);
    OK(windrow_flush(db, &error));
    OK(windrow_consumers_json(db, &json, &error));
    is_behind = strstr(json, "\"is_behind\":true") != NULL;
    windrow_text_free(json);
  }
  FAILS(WINDROW_FELL_BEHIND, "snapshot", windrow_changes_next(changes, 0, &change, &error));
  CHECK(change == NULL);
  FAILS(WINDROW_FELL_BEHIND, "snapshot", windrow_consumer_changes(consumer, &again, &error));
  FAILS(WINDROW_FELL_BEHIND, "snapshot", windrow_consumer_acknowledge(consumer, count, &error));
  FAILS(WINDROW_FELL_BEHIND, "snapshot", windrow_changes_open(db, 1, &again, &error));
  windrow_changes_free(changes);
  OK(windrow_consumer_remove(db, "copy", &error));
  FAILS(WINDROW_NOT_FOUND, "copy", windrow_consumer_remove(db, "copy", &error));
  FAILS(WINDROW_NOT_FOUND, "copy", windrow_consumer_acknowledged(consumer, &count, &error));
  windrow_consumer_free(consumer);
  OK(windrow_consumer_open(db, "copy", &consumer, &error));
  OK(windrow_consumer_changes(consumer, &changes, &error));
  put(users, "g", "5");
  NEXT(changes, "1 people:0:g=5 ");
  OK(windrow_consumer_acknowledge(consumer, sequence, &error));
  windrow_consumer_free(consumer);
  windrow_changes_free(changes);
  windrow_keyspace_free(users);
  OK(windrow_close(db, &error));
}

/* Reads numbers from a feed until the database is closed, in a thread of its own. */
static void* follow(void* state) {
  windrow_changes* changes = state;
  uint64_t followed = 0;
  windrow_error* error;
  windrow_change* change;
  while (windrow_changes_next(changes, 60000, &change, &error) == WINDROW_OK) {
    if (windrow_change_kind(change) == WINDROW_CHANGE_BATCH) {
      char seen[256] = "", expected[256];
      followed += windrow_change_count(change);
      OK(windrow_change_visit(change, describe, seen, &error));
      snprintf(expected, sizeof expected, "=%d ", (int)followed);
      CHECK(strlen(seen) > 200 || strstr(seen, expected) != NULL);
    }
    windrow_change_free(change);
  }
  CHECK(windrow_error_code(error) == WINDROW_CLOSED && change == NULL);
  windrow_error_free(error);
  windrow_changes_free(changes);
  CHECK(followed <= 100);
  return NULL;
}

static void test_following(void) {
  windrow_database* db = open_feed(1 << 30);
  windrow_changes *changes, *last;
  windrow_change* change;
  windrow_keyspace* keyspace;
  windrow_snapshot* snapshot;
  pthread_t follower;
  OK(windrow_keyspace_open(db, "people", &keyspace, &error));
  OK(windrow_snapshot_new(db, &snapshot, &error));
  OK(windrow_changes_open(db, windrow_snapshot_sequence(snapshot) + 1, &changes, &error));
  OK(windrow_changes_open(db, windrow_snapshot_sequence(snapshot) + 1, &last, &error));
  windrow_snapshot_free(snapshot);
  OK(windrow_changes_next(last, 20, &change, &error));
  CHECK(change == NULL);
  CHECK(pthread_create(&follower, NULL, follow, changes) == 0);
  char number[16];
  for (int i = 1; i <= 100; i++) {
    snprintf(number, sizeof number, "%d", i);
    put(keyspace, "number", number);
  }
  windrow_keyspace_free(keyspace);
  OK(windrow_close(db, &error));
  CHECK(pthread_join(follower, NULL) == 0);
  FAILS(WINDROW_CLOSED, "closed", windrow_changes_next(last, 0, &change, &error));
  windrow_changes_free(last);
}

/* The number of entries that are in the state. */
static int entries_of(windrow_database* state) {
  windrow_keyspace* keyspace;
  windrow_cursor* cursor;
  bool valid;
  int count = 0;
  OK(windrow_keyspace_open_existing(state, "shared", &keyspace, &error));
  if (keyspace == NULL) return -1;
  OK(windrow_cursor_open(keyspace, NULL, everything, &cursor, &error));
  OK(windrow_cursor_seek_to_first(cursor, &valid, &error));
  while (valid) {
    count++;
    OK(windrow_cursor_next(cursor, &valid, &error));
  }
  windrow_cursor_free(cursor);
  FAILS(WINDROW_READ_ONLY, "reading", windrow_put(keyspace, text("a"), none, 0, &error));
  windrow_keyspace_free(keyspace);
  return count;
}

/* A secondary reads beside the writer. Its states do not change. */
static void test_secondary(windrow_database* writer) {
  windrow_secondary* secondary = (windrow_secondary*)1;
  windrow_database *before, *after;
  windrow_keyspace* keyspace;
  FAILS(WINDROW_NOT_FOUND, "no database",
        windrow_open_secondary(in_folder("nowhere"), NULL, &secondary, &error));
  CHECK(secondary == NULL);
  OK(windrow_open_secondary(in_folder("db"), NULL, &secondary, &error));
  OK(windrow_secondary_database(secondary, &before, &error));
  CHECK(entries_of(before) == -1);
  OK(windrow_keyspace_open(writer, "shared", &keyspace, &error));
  put(keyspace, "a", "1");
  put(keyspace, "b", "2");
  OK(windrow_secondary_catch_up(secondary, &after, &error));
  CHECK(entries_of(after) == 2 && entries_of(before) == -1);
  windrow_database_free(before);
  put(keyspace, "c", "3");
  OK(windrow_secondary_catch_up(secondary, NULL, &error));
  OK(windrow_secondary_database(secondary, &before, &error));
  CHECK(entries_of(before) == 3 && entries_of(after) == 2);
  windrow_database_free(before);
  OK(windrow_secondary_follow(secondary, 1, &error));
  put(keyspace, "d", "4");
  for (int count = 0; count != 4;) {
    OK(windrow_secondary_database(secondary, &before, &error));
    count = entries_of(before);
    windrow_database_free(before);
  }
  windrow_secondary_free(secondary);
  CHECK(entries_of(after) == 2);
  windrow_database_free(after);
  windrow_keyspace_free(keyspace);
}

/* Handles that outlive their database return errors, and are freed in any order. */
static void test_close(windrow_database* db) {
  windrow_keyspace* keyspace;
  windrow_snapshot* snapshot;
  windrow_cursor* cursor;
  windrow_transaction* transaction;
  windrow_value* value;
  bool valid;
  OK(windrow_keyspace_open(db, "scanned", &keyspace, &error));
  OK(windrow_snapshot_new(db, &snapshot, &error));
  OK(windrow_cursor_open(keyspace, snapshot, everything, &cursor, &error));
  OK(windrow_cursor_seek_to_first(cursor, &valid, &error));
  OK(windrow_transaction_begin(db, WINDROW_ISOLATION_SERIALIZABLE, &transaction, &error));
  OK(windrow_get(keyspace, NULL, text("a"), &value, &error));
  OK(windrow_checkpoint(db, in_folder("copy"), &error));
  FAILS(WINDROW_ALREADY_EXISTS, "", windrow_checkpoint(db, in_folder("copy"), &error));
  OK(windrow_close(db, &error));
  FAILS(WINDROW_CLOSED, "closed", windrow_put(keyspace, text("a"), none, 0, &error));
  FAILS(WINDROW_CLOSED, "closed", windrow_get(keyspace, NULL, text("a"), NULL, &error));
  FAILS(WINDROW_CLOSED, "closed",
        windrow_transaction_get(transaction, keyspace, text("a"), 0, NULL, &error));
  OK(windrow_cursor_next(cursor, &valid, &error));
  CHECK(valid && is(windrow_cursor_key(cursor), "ab"));
  OK(windrow_transaction_put(transaction, keyspace, text("a"), none, &error));
  FAILS(WINDROW_CLOSED, "closed", windrow_transaction_commit(transaction, 0, &error));
  windrow_keyspace_free(keyspace);
  windrow_snapshot_free(snapshot);
  windrow_cursor_free(cursor);
  check_value(value, "1");

  windrow_database* copy;
  OK(windrow_open_read_only(in_folder("copy"), NULL, &copy, &error));
  OK(windrow_keyspace_open(copy, "scanned", &keyspace, &error));
  check_get(keyspace, NULL, "a", "1");
  FAILS(WINDROW_READ_ONLY, "reading", windrow_put(keyspace, text("a"), none, 0, &error));
  windrow_keyspace_free(keyspace);
  FAILS(WINDROW_LOCKED, "open already", windrow_destroy(in_folder("copy"), &error));
  windrow_database_free(copy);
  OK(windrow_destroy(in_folder("copy"), &error));
  FAILS(WINDROW_NOT_FOUND, "no database",
        windrow_open_read_only(in_folder("copy"), NULL, &copy, &error));
}

/* Takes JSON and looks for words in it. */
static void check_json(char* json, const char* words) {
  if (json == NULL || strstr(json, words) == NULL) {
    fprintf(stderr, "no %s in %s\n", words, json == NULL ? "null" : json);
    exit(1);
  }
  windrow_text_free(json);
}

/* What checks, repairs and reads report, expiries as they are kept, and several keys in a transaction. */
static void test_reports(void) {
  windrow_database* db;
  windrow_keyspace* keyspace;
  windrow_transaction* transaction;
  windrow_value* values[2];
  const windrow_bytes keys[2] = {text("a"), text("b")};
  uint64_t expires_at;
  char* json;
  NULLS(windrow_verify_json(NULL, &json, &error));
  CHECK(json == NULL);
  NULLS(windrow_backups_verify_json(NULL, NULL, &error));
  NULLS(windrow_repair(NULL, NULL, NULL, NULL, &error));
  NULLS(windrow_explain_get_json(NULL, NULL, text("a"), NULL, &error));
  NULLS(windrow_put_with_expiry(NULL, text("a"), none, WINDROW_EXPIRY_NEVER, 0, &error));
  NULLS(windrow_transaction_multi_get(NULL, NULL, NULL, NULL, 0, &error));

  OK(windrow_open(in_folder("reports"), NULL, &db, &error));
  OK(windrow_keyspace_open(db, "main", &keyspace, &error));
  OK(windrow_put_with_expiry(keyspace, text("a"), text("1"), 4102444800000, 0, &error));
  OK(windrow_expires_at(keyspace, NULL, text("a"), &expires_at, &error));
  CHECK(expires_at == 4102444800000);
  OK(windrow_put_with_expiry(keyspace, text("b"), text("2"), WINDROW_EXPIRY_NEVER, 0, &error));
  OK(windrow_expires_at(keyspace, NULL, text("b"), &expires_at, &error));
  CHECK(expires_at == WINDROW_EXPIRY_NEVER);
  FAILS(WINDROW_INVALID_ARGUMENT, "expires",
        windrow_put_with_expiry(keyspace, text("a"), none, WINDROW_EXPIRY_ABSENT, 0, &error));

  OK(windrow_transaction_begin(db, WINDROW_ISOLATION_SERIALIZABLE, &transaction, &error));
  OK(windrow_transaction_put(transaction, keyspace, text("b"), text("3"), &error));
  OK(windrow_transaction_multi_get(transaction, keyspace, keys, values, 2, &error));
  check_value(values[0], "1");
  check_value(values[1], "3");
  windrow_transaction_roll_back(transaction);

  OK(windrow_flush(db, &error));
  OK(windrow_explain_get_json(keyspace, NULL, text("a"), &json, &error));
  check_json(json, "\"is_found\":true");
  OK(windrow_verify_json(db, &json, &error));
  check_json(json, "\"damage\":[]");
  windrow_keyspace_free(keyspace);
  OK(windrow_close(db, &error));
  OK(windrow_repair(in_folder("reports"), in_folder("repaired"), NULL, &json, &error));
  check_json(json, "\"keyspaces\":[{\"entries\":2,\"name\":\"main\"}]");
  FAILS(WINDROW_ALREADY_EXISTS, "", windrow_repair(in_folder("reports"), in_folder("repaired"), NULL, NULL, &error));
}

int main(int count, char** arguments) {
  if (count != 2) return 2;
  folder = arguments[1];
  CHECK(strchr(windrow_version(), '.') != NULL);
  test_null();
  windrow_database* db = test_open();
  test_keyspace(db);
  test_merges_and_batches(db);
  test_cursors(db);
  test_transactions(db);
  test_expiry(db);
  test_single_keys(db);
  test_portable_batches(db);
  test_loads(db);
  db = test_prepared(db);
  test_callbacks();
  test_backups(db);
  test_changes();
  test_following();
  test_secondary(db);
  test_close(db);
  test_reports();
  puts("windrow.h: all functions passed");
  return 0;
}
