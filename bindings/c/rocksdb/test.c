/* The functions of RocksDB's interface in use, from the open of a database to its removal.

   usage: test FOLDER */

#include "helpers.h"

#include <pthread.h>

/* A merge operator that joins texts by commas. */
static const char* name_of(void* state) {
  (void)state;
  return "test.join";
}

static char* join(const char* first, size_t first_length, const char* const* operands,
                  const size_t* lengths, int count, unsigned char* success, size_t* length) {
  size_t total = first_length;
  char* joined;
  for (int at = 0; at < count; ++at) total += lengths[at] + 1;
  joined = malloc(total + 1);
  *length = 0;
  if (first != NULL) {
    memcpy(joined, first, first_length);
    *length = first_length;
  }
  for (int at = 0; at < count; ++at) {
    if (*length > 0) joined[(*length)++] = ',';
    memcpy(joined + *length, operands[at], lengths[at]);
    *length += lengths[at];
  }
  *success = 1;
  return joined;
}

static char* full_merge(void* state, const char* key, size_t key_length, const char* base,
                        size_t base_length, const char* const* operands, const size_t* lengths,
                        int count, unsigned char* success, size_t* length) {
  (void)state, (void)key, (void)key_length;
  return join(base, base_length, operands, lengths, count, success, length);
}

static char* partial_merge(void* state, const char* key, size_t key_length,
                           const char* const* operands, const size_t* lengths, int count,
                           unsigned char* success, size_t* length) {
  (void)state, (void)key, (void)key_length;
  return join(NULL, 0, operands, lengths, count, success, length);
}

static void delete_value(void* state, const char* value, size_t length) {
  (void)state, (void)length;
  free((char*)value);
}

static rocksdb_options_t* create_options(void) {
  rocksdb_options_t* options = rocksdb_options_create();
  rocksdb_options_set_create_if_missing(options, 1);
  rocksdb_options_set_create_missing_column_families(options, 1);
  rocksdb_options_set_merge_operator(
      options, rocksdb_mergeoperator_create(&destroyed, count_call, full_merge, partial_merge,
                                            delete_value, name_of));
  return options;
}

static void log_line(void* state, unsigned level, char* line, size_t length) {
  CHECK(level == 2 && strlen(line) == length);
  if (strstr(line, "ignored: options_use_fsync") != NULL) ++*(int*)state;
}

static void count_put(void* state, const char* key, size_t key_length, const char* value,
                      size_t value_length) {
  (void)key, (void)value;
  *(size_t*)state += 100 * key_length + value_length;
}

static void count_delete(void* state, const char* key, size_t length) {
  (void)key;
  *(size_t*)state += 10000 * length;
}

static void count_put_cf(void* state, uint32_t family, const char* key, size_t key_length,
                         const char* value, size_t value_length) {
  count_put(state, key, key_length, value, value_length);
  *(size_t*)state += 1000000 * family;
}

static void count_delete_cf(void* state, uint32_t family, const char* key, size_t length) {
  count_delete(state, key, length);
  *(size_t*)state += 1000000 * family;
}

static void use_database(void) {
  rocksdb_options_t* options = create_options();
  rocksdb_options_t* copy = rocksdb_options_create_copy(options);
  rocksdb_t* db;
  rocksdb_iterator_t* iterator;
  const rocksdb_snapshot_t* snapshot;
  rocksdb_readoptions_t* bounded = rocksdb_readoptions_create();
  rocksdb_pinnableslice_t* slice;
  rocksdb_logger_t* logger;
  int lines = 0;
  size_t length;
  uint64_t number = 0;
  char* text;

  logger = rocksdb_logger_create_callback_logger(0, log_line, &lines);
  rocksdb_options_set_info_log(copy, logger);
  rocksdb_logger_destroy(logger);
  rocksdb_options_set_use_fsync(copy, 1);
  db = rocksdb_open(copy, path, &error);
  check();
  CHECK(lines == 1);
  CHECK(rocksdb_open(options, path, &error) == NULL);
  check_error("/LOCK:");
  rocksdb_destroy_db(options, path, &error);
  check_error("IO error");

  CHECK(rocksdb_get_latest_sequence_number(db) == 0);
  put(db, "a", "1");
  put(db, "b", "2");
  put(db, "c", "3");
  snapshot = rocksdb_create_snapshot(db);
  CHECK(rocksdb_snapshot_get_sequence_number(snapshot) == 3);
  rocksdb_delete(db, writes, "b", 1, &error);
  check();
  rocksdb_merge(db, writes, "c", 1, "4", 1, &error);
  rocksdb_merge(db, writes, "d", 1, "5", 1, &error);
  check();
  check_get(db, "b", NULL);
  check_get(db, "c", "3,4");
  check_get(db, "d", "5");
  rocksdb_readoptions_set_snapshot(reads, snapshot);
  check_get(db, "b", "2");
  check_get(db, "c", "3");
  iterator = rocksdb_create_iterator(db, reads);
  check_entry(iterator, NULL, NULL);
  rocksdb_iter_seek_to_first(iterator);
  check_entry(iterator, "a", "1");
  rocksdb_iter_next(iterator);
  check_entry(iterator, "b", "2");
  rocksdb_iter_seek_to_last(iterator);
  check_entry(iterator, "c", "3");
  rocksdb_iter_refresh(iterator, &error);
  check();
  rocksdb_iter_seek_for_prev(iterator, "b", 1);
  check_entry(iterator, "a", "1");
  rocksdb_iter_prev(iterator);
  check_entry(iterator, NULL, NULL);
  rocksdb_iter_destroy(iterator);
  rocksdb_readoptions_set_snapshot(reads, NULL);
  rocksdb_release_snapshot(db, snapshot);

  rocksdb_readoptions_set_iterate_lower_bound(bounded, "b", 1);
  rocksdb_readoptions_set_iterate_upper_bound(bounded, "d", 1);
  iterator = rocksdb_create_iterator(db, bounded);
  rocksdb_iter_seek(iterator, "a", 1);
  check_entry(iterator, "c", "3,4");
  rocksdb_iter_next(iterator);
  check_entry(iterator, NULL, NULL);
  rocksdb_iter_destroy(iterator);
  rocksdb_readoptions_destroy(bounded);

  slice = rocksdb_get_pinned(db, reads, "a", 1, &error);
  check();
  text = (char*)rocksdb_pinnableslice_value(slice, &length);
  CHECK(length == 1 && *text == '1');
  rocksdb_pinnableslice_destroy(slice);
  CHECK(rocksdb_get_pinned(db, reads, "b", 1, &error) == NULL);
  check();
  {
    const char* keys[] = {"a", "b", "d"};
    size_t lengths[] = {1, 1, 1};
    char* values[3];
    size_t value_lengths[3];
    char* errors[3];
    rocksdb_multi_get(db, reads, 3, keys, lengths, values, value_lengths, errors);
    CHECK(errors[0] == NULL && errors[1] == NULL && errors[2] == NULL);
    check_value(values[0], value_lengths[0], "1");
    check_value(values[1], value_lengths[1], NULL);
    check_value(values[2], value_lengths[2], "5");
  }
  CHECK(rocksdb_key_may_exist(db, reads, "a", 1, NULL, NULL, NULL, 0, NULL) == 1);
  CHECK(rocksdb_key_may_exist(db, reads, "b", 1, NULL, NULL, NULL, 0, NULL) == 0);

  rocksdb_flush(db, NULL, &error);
  rocksdb_flush_wal(db, 1, &error);
  check();
  rocksdb_compact_range(db, NULL, 0, NULL, 0);
  text = rocksdb_property_value(db, "rocksdb.stats");
  CHECK(text != NULL && strstr(text, "[default]") != NULL);
  rocksdb_free(text);
  CHECK(rocksdb_property_value(db, "rocksdb.nosuchprop") == NULL);
  CHECK(rocksdb_property_int(db, "rocksdb.total-sst-files-size", &number) == 0 && number > 0);
  CHECK(rocksdb_property_int(db, "rocksdb.nosuchprop", &number) == -1);
  {
    const char* names[] = {"write_buffer_size"};
    const char* sizes[] = {"8M"};
    rocksdb_set_options(db, 1, names, sizes, &error);
    check();
    rocksdb_set_options(db, 0, NULL, NULL, &error);
    check_error("Invalid argument");
  }
  rocksdb_disable_file_deletions(db, &error);
  check_error("Not implemented");
  CHECK(rocksdb_livefiles(db) == NULL);
  rocksdb_close(db);

  db = rocksdb_open_for_read_only(options, path, 0, &error);
  check();
  check_get(db, "c", "3,4");
  rocksdb_put(db, writes, "x", 1, "y", 1, &error);
  check_error("Not implemented");
  rocksdb_close(db);
  rocksdb_options_destroy(copy);
  rocksdb_options_destroy(options);
}

static void use_batches_and_families(void) {
  rocksdb_options_t* options = create_options();
  const char* names[] = {"default", "first"};
  const rocksdb_options_t* both[] = {options, options};
  rocksdb_column_family_handle_t* families[2];
  rocksdb_column_family_handle_t* second;
  rocksdb_t* db;
  rocksdb_writebatch_t* batch = rocksdb_writebatch_create();
  rocksdb_writebatch_t* copy;
  rocksdb_checkpoint_t* checkpoint;
  rocksdb_writeoptions_t* synced = rocksdb_writeoptions_create();
  const char* bytes;
  size_t length;
  size_t sum = 0;
  char** list;
  char* name;
  char other[4200];

  db = rocksdb_open_column_families(options, path, 2, names, both, families, &error);
  check();
  CHECK(rocksdb_column_family_handle_get_id(families[0]) == 0);
  CHECK(rocksdb_column_family_handle_get_id(families[1]) == 1);
  name = rocksdb_column_family_handle_get_name(families[1], &length);
  check_value(name, length, "first");

  rocksdb_writebatch_put(batch, "k", 1, "v", 1);
  rocksdb_writebatch_put_cf(batch, families[1], "kk", 2, "vv", 2);
  rocksdb_writebatch_set_save_point(batch);
  rocksdb_writebatch_delete(batch, "k", 1);
  rocksdb_writebatch_rollback_to_save_point(batch, &error);
  check();
  rocksdb_writebatch_rollback_to_save_point(batch, &error);
  check_error("save point");
  rocksdb_writebatch_merge_cf(batch, families[1], "kk", 2, "w", 1);
  rocksdb_writebatch_delete_cf(batch, families[1], "gone", 4);
  rocksdb_writebatch_put_log_data(batch, "log", 3);
  CHECK(rocksdb_writebatch_count(batch) == 4);
  rocksdb_writebatch_iterate(batch, &sum, count_put, count_delete);
  CHECK(sum == 101);
  sum = 0;
  rocksdb_writebatch_iterate_cf(batch, &sum, count_put_cf, count_delete_cf, count_put_cf);
  CHECK(sum == 3000000 + 101 + 202 + 201 + 40000);
  bytes = rocksdb_writebatch_data(batch, &length);
  copy = rocksdb_writebatch_create_from(bytes, length);
  rocksdb_writebatch_clear(batch);
  CHECK(rocksdb_writebatch_count(batch) == 0);
  rocksdb_writeoptions_set_sync(synced, 1);
  rocksdb_write(db, synced, copy, &error);
  check();
  rocksdb_writebatch_destroy(copy);
  check_get(db, "k", "v");
  check_get_cf(db, families[1], "kk", "vv,w");
  check_get_cf(db, families[1], "k", NULL);
  copy = rocksdb_writebatch_create_from("short", 5);
  rocksdb_write(db, writes, copy, &error);
  check_error("Invalid argument");
  rocksdb_writebatch_destroy(copy);
  rocksdb_writebatch_destroy(batch);

  second = rocksdb_create_column_family(db, options, "second", &error);
  check();
  CHECK(rocksdb_create_column_family(db, options, "second", &error) == NULL);
  check_error("exists already");
  rocksdb_put_cf(db, writes, second, "a", 1, "1", 1, &error);
  rocksdb_put_cf(db, writes, second, "b", 1, "2", 1, &error);
  rocksdb_put_cf(db, writes, second, "c", 1, "3", 1, &error);
  rocksdb_delete_range_cf(db, writes, second, "a", 1, "c", 1, &error);
  check();
  check_get_cf(db, second, "b", NULL);
  check_get_cf(db, second, "c", "3");
  rocksdb_delete_range_cf(db, writes, second, "c", 1, "a", 1, &error);
  check_error("Invalid argument");
  rocksdb_drop_column_family(db, families[0], &error);
  check_error("default");
  rocksdb_drop_column_family(db, second, &error);
  check();
  rocksdb_column_family_handle_destroy(second);

  checkpoint = rocksdb_checkpoint_object_create(db, &error);
  check();
  snprintf(other, sizeof other, "%s.copy", path);
  rocksdb_checkpoint_create(checkpoint, other, 0, &error);
  check();
  rocksdb_checkpoint_create(checkpoint, other, 0, &error);
  check_error("Invalid argument");
  rocksdb_checkpoint_object_destroy(checkpoint);
  rocksdb_column_family_handle_destroy(families[0]);
  rocksdb_column_family_handle_destroy(families[1]);
  rocksdb_close(db);

  list = rocksdb_list_column_families(options, other, &length, &error);
  check();
  CHECK(length == 2 && strcmp(list[0], "default") == 0 && strcmp(list[1], "first") == 0);
  rocksdb_list_column_families_destroy(list, length);
  CHECK(rocksdb_open(options, other, &error) == NULL);
  check_error("Invalid argument");
  rocksdb_destroy_db(options, other, &error);
  check();
  rocksdb_writeoptions_destroy(synced);
  rocksdb_options_destroy(options);
}

static void check_transaction(rocksdb_transaction_t* transaction, const char* key,
                              const char* expected) {
  size_t length = 1;
  char* value = rocksdb_transaction_get(transaction, reads, key, strlen(key), &length, &error);
  check_value(value, length, expected);
}

static void use_locking_transactions(void) {
  rocksdb_options_t* options = create_options();
  rocksdb_transactiondb_options_t* locks = rocksdb_transactiondb_options_create();
  rocksdb_transaction_options_t* with_snapshot = rocksdb_transaction_options_create();
  rocksdb_transactiondb_t* db;
  rocksdb_transaction_t* transaction;
  rocksdb_transaction_t** prepared;
  rocksdb_iterator_t* iterator;
  const rocksdb_snapshot_t* snapshot;
  size_t count;
  char* name;

  rocksdb_transactiondb_options_set_transaction_lock_timeout(locks, 20);
  rocksdb_transactiondb_options_set_default_lock_timeout(locks, 20);
  rocksdb_transaction_options_set_set_snapshot(with_snapshot, 1);
  db = rocksdb_transactiondb_open(options, locks, path, &error);
  check();
  rocksdb_transactiondb_put(db, writes, "a", 1, "1", 1, &error);
  check();
  transaction = rocksdb_transaction_begin(db, writes, with_snapshot, NULL);
  snapshot = rocksdb_transaction_get_snapshot(transaction);
  CHECK(rocksdb_snapshot_get_sequence_number(snapshot) == 1);
  rocksdb_free((void*)snapshot);
  rocksdb_transaction_put(transaction, "a", 1, "2", 1, &error);
  check();
  rocksdb_transactiondb_put(db, writes, "a", 1, "3", 1, &error);
  check_error("Operation timed out");
  rocksdb_transaction_set_savepoint(transaction);
  rocksdb_transaction_put(transaction, "b", 1, "2", 1, &error);
  rocksdb_transaction_rollback_to_savepoint(transaction, &error);
  check();
  rocksdb_transaction_merge(transaction, "a", 1, "m", 1, &error);
  rocksdb_transaction_delete(transaction, "c", 1, &error);
  check();
  check_transaction(transaction, "a", "2,m");
  check_transaction(transaction, "b", NULL);
  {
    const char* keys[] = {"a", "b"};
    size_t lengths[] = {1, 1};
    char* values[2];
    size_t value_lengths[2];
    char* errors[2];
    rocksdb_transaction_multi_get(transaction, reads, 2, keys, lengths, values, value_lengths, errors);
    CHECK(errors[0] == NULL && errors[1] == NULL);
    check_value(values[0], value_lengths[0], "2,m");
    check_value(values[1], value_lengths[1], NULL);
  }
  iterator = rocksdb_transaction_create_iterator(transaction, reads);
  rocksdb_iter_seek_to_first(iterator);
  check_entry(iterator, "a", "2,m");
  rocksdb_iter_next(iterator);
  check_entry(iterator, NULL, NULL);
  rocksdb_iter_destroy(iterator);
  rocksdb_transaction_prepare(transaction, &error);
  check_error("name");
  rocksdb_transaction_set_name(transaction, "one", 3, &error);
  check();
  rocksdb_transaction_prepare(transaction, &error);
  check();
  rocksdb_transaction_destroy(transaction);
  rocksdb_transactiondb_close(db);

  db = rocksdb_transactiondb_open(options, locks, path, &error);
  check();
  prepared = rocksdb_transactiondb_get_prepared_transactions(db, &count);
  CHECK(count == 1);
  name = rocksdb_transaction_get_name(prepared[0], &count);
  check_value(name, count, "one");
  rocksdb_transaction_commit(prepared[0], &error);
  check();
  rocksdb_transaction_destroy(prepared[0]);
  rocksdb_free(prepared);
  transaction = rocksdb_transaction_begin(db, writes, with_snapshot, NULL);
  check_transaction(transaction, "a", "2,m");
  rocksdb_transactiondb_put(db, writes, "a", 1, "4", 1, &error);
  check();
  CHECK(rocksdb_transaction_get_for_update(transaction, reads, "a", 1, &count, 1, &error) == NULL);
  check_error("Resource busy");
  /* Nothing begins, and the handle stays. */
  CHECK(rocksdb_transaction_begin(NULL, writes, with_snapshot, transaction) == transaction);
  transaction = rocksdb_transaction_begin(db, writes, with_snapshot, transaction);
  rocksdb_transaction_put(transaction, "a", 1, "5", 1, &error);
  rocksdb_transaction_commit(transaction, &error);
  check();
  rocksdb_transaction_destroy(transaction);
  {
    rocksdb_t* base = rocksdb_transactiondb_get_base_db(db);
    check_get(base, "a", "5");
    rocksdb_transactiondb_close_base_db(base);
  }
  rocksdb_transactiondb_close(db);
  rocksdb_transaction_options_destroy(with_snapshot);
  rocksdb_transactiondb_options_destroy(locks);
  rocksdb_destroy_db(options, path, &error);
  check();
  rocksdb_options_destroy(options);
}

static void use_optimistic_transactions(void) {
  rocksdb_options_t* options = create_options();
  rocksdb_optimistictransaction_options_t* plain = rocksdb_optimistictransaction_options_create();
  rocksdb_optimistictransactiondb_t* db = rocksdb_optimistictransactiondb_open(options, path, &error);
  rocksdb_t* base;
  rocksdb_transaction_t* transaction;
  check();
  base = rocksdb_optimistictransactiondb_get_base_db(db);
  transaction = rocksdb_optimistictransaction_begin(db, writes, plain, NULL);
  rocksdb_transaction_put(transaction, "a", 1, "1", 1, &error);
  check();
  put(base, "a", "2");
  rocksdb_transaction_commit(transaction, &error);
  check_error("Resource busy");
  rocksdb_transaction_rollback(transaction, &error);
  rocksdb_transaction_put(transaction, "a", 1, "3", 1, &error);
  rocksdb_transaction_commit(transaction, &error);
  check();
  rocksdb_transaction_destroy(transaction);
  check_get(base, "a", "3");
  rocksdb_optimistictransactiondb_close_base_db(base);
  rocksdb_optimistictransactiondb_close(db);
  rocksdb_optimistictransaction_options_destroy(plain);
  rocksdb_destroy_db(options, path, &error);
  check();
  rocksdb_options_destroy(options);
}

static void refuse(void) {
  rocksdb_options_t* options = rocksdb_options_create();
  rocksdb_comparator_t* comparator;
  rocksdb_env_t* environment = rocksdb_create_mem_env();
  CHECK(rocksdb_open(options, path, &error) == NULL);
  check_error("Invalid argument: there is no database in");
  CHECK(rocksdb_open_as_secondary(options, path, path, &error) == NULL);
  check_error("Invalid argument: there is no database in");
  rocksdb_options_set_env(options, environment);
  rocksdb_env_destroy(environment);
  CHECK(rocksdb_open(options, path, &error) == NULL);
  check_error("Not implemented: databases in memory");
  rocksdb_options_destroy(options);
  options = rocksdb_options_create();
  comparator = rocksdb_comparator_with_ts_create(&destroyed, count_call, NULL, NULL, NULL, name_of, 8);
  rocksdb_options_set_comparator(options, comparator);
  CHECK(rocksdb_open(options, path, &error) == NULL);
  check_error("Not implemented: Windrow has no timestamps");
  rocksdb_comparator_destroy(comparator);
  rocksdb_options_destroy(options);
}

static int is_written;

/* Gives two keys the same value by one batch, over and over. */
static void* write_pairs(void* context) {
  rocksdb_t* db = context;
  rocksdb_writebatch_t* batch = rocksdb_writebatch_create();
  rocksdb_writeoptions_t* options = rocksdb_writeoptions_create();
  char* failed = NULL;
  for (int round = 0; round < 1000; ++round) {
    char value[16];
    size_t length = (size_t)snprintf(value, sizeof value, "%d", round);
    rocksdb_writebatch_clear(batch);
    rocksdb_writebatch_put(batch, "left", 4, value, length);
    rocksdb_writebatch_put(batch, "right", 5, value, length);
    rocksdb_write(db, options, batch, &failed);
    CHECK(failed == NULL);
  }
  rocksdb_writeoptions_destroy(options);
  rocksdb_writebatch_destroy(batch);
  __atomic_store_n(&is_written, 1, __ATOMIC_SEQ_CST);
  return NULL;
}

/* One call reads several keys in one state, also without a snapshot. */
static void read_pairs(void) {
  rocksdb_options_t* options = create_options();
  rocksdb_t* db = rocksdb_open(options, path, &error);
  check();
  rocksdb_put(db, writes, "left", 4, "-", 1, &error);
  rocksdb_put(db, writes, "right", 5, "-", 1, &error);
  check();
  pthread_t writer;
  CHECK(pthread_create(&writer, NULL, write_pairs, db) == 0);
  const char* keys[] = {"left", "right"};
  size_t lengths[] = {4, 5};
  while (!__atomic_load_n(&is_written, __ATOMIC_SEQ_CST)) {
    char* values[2];
    size_t value_lengths[2];
    char* errors[2];
    rocksdb_multi_get(db, reads, 2, keys, lengths, values, value_lengths, errors);
    CHECK(errors[0] == NULL && errors[1] == NULL);
    CHECK(value_lengths[0] == value_lengths[1]);
    CHECK(memcmp(values[0], values[1], value_lengths[0]) == 0);
    rocksdb_free(values[0]);
    rocksdb_free(values[1]);
  }
  CHECK(pthread_join(writer, NULL) == 0);
  rocksdb_close(db);
  rocksdb_destroy_db(options, path, &error);
  check();
  rocksdb_options_destroy(options);
}

int main(int count, char** arguments) {
  if (count != 2) return 2;
  snprintf(path, sizeof path, "%s", arguments[1]);
  reads = rocksdb_readoptions_create();
  writes = rocksdb_writeoptions_create();
  use_database();
  CHECK(destroyed == 1);
  use_batches_and_families();
  CHECK(destroyed == 2);
  {
    rocksdb_options_t* options = rocksdb_options_create();
    rocksdb_destroy_db(options, path, &error);
    check();
    rocksdb_options_destroy(options);
  }
  use_locking_transactions();
  use_optimistic_transactions();
  CHECK(destroyed == 4);
  refuse();
  CHECK(destroyed == 5);
  read_pairs();
  rocksdb_readoptions_destroy(reads);
  rocksdb_writeoptions_destroy(writes);
  return 0;
}
