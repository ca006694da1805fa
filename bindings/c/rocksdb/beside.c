/* What happens beside the writes of a program: secondary instances and read-only opens, updates since a sequence number,
   compaction filters.

   usage: beside FOLDER; FOLDER.log is the folder of the secondary instances */

#include "helpers.h"

static rocksdb_options_t* create_options(void) {
  rocksdb_options_t* options = rocksdb_options_create();
  rocksdb_options_set_create_if_missing(options, 1);
  rocksdb_options_set_create_missing_column_families(options, 1);
  return options;
}

static void destroy(const char* folder) {
  rocksdb_options_t* options = rocksdb_options_create();
  rocksdb_destroy_db(options, folder, &error);
  check();
  rocksdb_options_destroy(options);
}

static void read_beside(void) {
  static char own[4100];
  rocksdb_options_t* options = create_options();
  const char* names[] = {"default", "one"};
  const rocksdb_options_t* all[] = {options, options};
  rocksdb_column_family_handle_t* families[2];
  rocksdb_column_family_handle_t* read[2];
  rocksdb_t* db;
  rocksdb_t* secondary;
  rocksdb_t* first;
  rocksdb_t* reader;
  char** list;
  size_t count = 0;

  snprintf(own, sizeof own, "%s.log", path);
  db = rocksdb_open_column_families(options, path, 2, names, all, families, &error);
  check();
  put(db, "k", "1");
  rocksdb_put_cf(db, writes, families[1], "k", 1, "1", 1, &error);
  check();
  secondary = rocksdb_open_as_secondary_column_families(options, path, own, 2, names, all, read, &error);
  check();
  first = rocksdb_open_as_secondary(options, path, own, &error);
  check();
  reader = rocksdb_open_for_read_only(options, path, 0, &error);
  check();
  list = rocksdb_list_column_families(options, path, &count, &error);
  check();
  CHECK(count == 2 && strcmp(list[1], "one") == 0);
  rocksdb_list_column_families_destroy(list, count);

  put(db, "k", "2");
  rocksdb_put_cf(db, writes, families[1], "k", 1, "2", 1, &error);
  check();
  check_get(secondary, "k", "1");
  check_get_cf(secondary, read[1], "k", "1");
  rocksdb_try_catch_up_with_primary(secondary, &error);
  check();
  check_get(secondary, "k", "2");
  check_get_cf(secondary, read[1], "k", "2");
  CHECK(rocksdb_get_latest_sequence_number(secondary) == rocksdb_get_latest_sequence_number(db));
  check_get(first, "k", "1");
  rocksdb_try_catch_up_with_primary(reader, &error);
  check_error("Not implemented: the database is no secondary");
  check_get(reader, "k", "1");
  rocksdb_put_cf(secondary, writes, read[1], "k", 1, "3", 1, &error);
  check_error("Not implemented");
  rocksdb_put(reader, writes, "k", 1, "3", 1, &error);
  check_error("Not implemented");
  CHECK(rocksdb_get_updates_since(secondary, 0, NULL, &error) == NULL);
  check_error("Not implemented: a secondary instance gives no updates");

  for (int at = 0; at < 2; ++at) {
    rocksdb_column_family_handle_destroy(read[at]);
    rocksdb_column_family_handle_destroy(families[at]);
  }
  rocksdb_close(db);
  rocksdb_close(first);
  /* A writer goes and another one comes beside the readers. */
  db = rocksdb_open_column_families(options, path, 2, names, all, families, &error);
  check();
  put(db, "k", "4");
  rocksdb_try_catch_up_with_primary(secondary, &error);
  check();
  check_get(secondary, "k", "4");
  check_get(reader, "k", "1");
  rocksdb_close(secondary);
  rocksdb_close(reader);
  for (int at = 0; at < 2; ++at) rocksdb_column_family_handle_destroy(families[at]);
  rocksdb_close(db);
  rocksdb_options_destroy(options);
  destroy(path);
  destroy(own);
}

/* Checks a batch that comes out of an iterator, and moves the iterator. */
static void check_update(rocksdb_wal_iterator_t* updates, uint64_t sequence, const char* bytes,
                         size_t length) {
  uint64_t found = 0;
  size_t found_length = 0;
  rocksdb_writebatch_t* batch;
  const char* data;
  CHECK(rocksdb_wal_iter_valid(updates));
  rocksdb_wal_iter_status(updates, &error);
  check();
  batch = rocksdb_wal_iter_get_batch(updates, &found);
  data = rocksdb_writebatch_data(batch, &found_length);
  CHECK(found == sequence && (uint8_t)data[0] == sequence);
  CHECK(found_length == 8 + length && memcmp(data + 8, bytes, length) == 0);
  rocksdb_writebatch_destroy(batch);
  rocksdb_wal_iter_next(updates);
}

/* Checks that an iterator is at its end. */
static void check_end(rocksdb_wal_iterator_t* updates) {
  CHECK(!rocksdb_wal_iter_valid(updates));
  rocksdb_wal_iter_status(updates, &error);
  check();
  CHECK(rocksdb_wal_iter_get_batch(updates, NULL) == NULL);
}

static void follow_updates(void) {
  rocksdb_options_t* options = create_options();
  rocksdb_t* db = rocksdb_open(options, path, &error);
  rocksdb_column_family_handle_t* family;
  rocksdb_writebatch_t* batch = rocksdb_writebatch_create();
  rocksdb_wal_iterator_t* updates;
  uint64_t newest;
  check();
  updates = rocksdb_get_updates_since(db, 0, NULL, &error);
  check();
  check_end(updates);
  CHECK(rocksdb_get_updates_since(db, 1, NULL, &error) == NULL);
  check_error("NotFound: ");
  put(db, "a", "1");
  CHECK(rocksdb_get_latest_sequence_number(db) == 1);
  rocksdb_writebatch_put(batch, "b", 1, "22", 2);
  rocksdb_writebatch_delete(batch, "a", 1);
  rocksdb_writebatch_merge(batch, "m", 1, "3", 1);
  rocksdb_writebatch_delete_range(batch, "x", 1, "z", 1);
  rocksdb_write(db, writes, batch, &error);
  check_error("Invalid argument");
  rocksdb_writebatch_clear(batch);
  rocksdb_writebatch_put(batch, "b", 1, "22", 2);
  rocksdb_writebatch_delete(batch, "a", 1);
  rocksdb_writebatch_delete_range(batch, "x", 1, "z", 1);
  rocksdb_write(db, writes, batch, &error);
  check();
  rocksdb_writebatch_destroy(batch);
  CHECK(rocksdb_get_latest_sequence_number(db) == 4);
  /* An iterator at its end goes on. */
  rocksdb_wal_iter_next(updates);
  check_update(updates, 1, "\1\0\0\0\1\1a\0011", 9);
  check_update(updates, 2, "\3\0\0\0\1\1b\00222\0\1a\17\1x\1z", 18);
  check_end(updates);
  rocksdb_wal_iter_destroy(updates);
  /* A number within a batch gives the batch. */
  updates = rocksdb_get_updates_since(db, 3, NULL, &error);
  check();
  family = rocksdb_create_column_family(db, options, "one", &error);
  check();
  rocksdb_put_cf(db, writes, family, "k", 1, "v", 1, &error);
  check();
  newest = rocksdb_get_latest_sequence_number(db);
  check_update(updates, 2, "\3\0\0\0\1\1b\00222\0\1a\17\1x\1z", 18);
  check_update(updates, newest, "\1\0\0\0\5\1\1k\1v", 10);
  check_end(updates);
  rocksdb_drop_column_family(db, family, &error);
  check();
  rocksdb_column_family_handle_destroy(family);
  put(db, "z", "9");
  rocksdb_wal_iter_next(updates);
  check_update(updates, newest + 2, "\1\0\0\0\1\1z\0019", 9);
  rocksdb_close(db);
  rocksdb_wal_iter_next(updates);
  CHECK(!rocksdb_wal_iter_valid(updates));
  rocksdb_wal_iter_status(updates, &error);
  check_error("Shutdown in progress");
  rocksdb_wal_iter_destroy(updates);
  rocksdb_options_destroy(options);
  destroy(path);
}

/* A compaction filter that removes keys with `_`, and changes values of keys with `%`. */
static unsigned char filter(void* state, int level, const char* key, size_t key_length,
                            const char* value, size_t value_length, char** new_value,
                            size_t* new_length, unsigned char* is_changed) {
  static char secret[] = "secret";
  (void)state, (void)level, (void)key_length, (void)value, (void)value_length;
  if (*key == '%') {
    *new_value = secret;
    *new_length = strlen(secret);
    *is_changed = 1;
  }
  return *key == '_';
}

static const char* name_of(void* state) {
  (void)state;
  return "beside.filter";
}

/* A factory whose filters change nothing in compactions that nobody has asked for. */
static rocksdb_compactionfilter_t* create_filter(void* state,
                                                 rocksdb_compactionfiltercontext_t* context) {
  (void)state;
  CHECK(!rocksdb_compactionfiltercontext_is_full_compaction(context));
  if (!rocksdb_compactionfiltercontext_is_manual_compaction(context)) return NULL;
  return rocksdb_compactionfilter_create(&destroyed, count_call, filter, name_of);
}

static void filter_values(void) {
  rocksdb_options_t* options = create_options();
  rocksdb_options_t* other = create_options();
  rocksdb_compactionfilter_t* own =
      rocksdb_compactionfilter_create(&destroyed, count_call, filter, name_of);
  const char* names[] = {"default", "made"};
  const rocksdb_options_t* all[] = {options, other};
  rocksdb_column_family_handle_t* families[2];
  const rocksdb_snapshot_t* snapshot;
  rocksdb_t* db;

  rocksdb_compactionfilter_set_ignore_snapshots(own, 1);
  rocksdb_options_set_compaction_filter(options, own);
  rocksdb_options_set_compaction_filter_factory(
      other, rocksdb_compactionfilterfactory_create(&destroyed, count_call, create_filter, name_of));
  db = rocksdb_open_column_families(options, path, 2, names, all, families, &error);
  check();
  for (int at = 0; at < 2; ++at) {
    rocksdb_put_cf(db, writes, families[at], "k", 1, "a", 1, &error);
    rocksdb_put_cf(db, writes, families[at], "_k", 2, "b", 1, &error);
    rocksdb_put_cf(db, writes, families[at], "%k", 2, "c", 1, &error);
    check();
  }
  snapshot = rocksdb_create_snapshot(db);
  destroyed = 0;
  for (int at = 0; at < 2; ++at) {
    rocksdb_compact_range_cf(db, families[at], NULL, 0, NULL, 0);
    check_get_cf(db, families[at], "k", "a");
    check_get_cf(db, families[at], "_k", NULL);
    check_get_cf(db, families[at], "%k", "secret");
  }
  /* Each filter of the factory is gone. */
  CHECK(destroyed >= 3);
  rocksdb_readoptions_set_snapshot(reads, snapshot);
  check_get(db, "_k", "b");
  check_get(db, "%k", "c");
  rocksdb_readoptions_set_snapshot(reads, NULL);
  rocksdb_release_snapshot(db, snapshot);
  CHECK(rocksdb_create_column_family(db, other, "new", &error) == NULL);
  check_error("Not implemented: the compaction filter");
  destroyed = 0;
  for (int at = 0; at < 2; ++at) rocksdb_column_family_handle_destroy(families[at]);
  rocksdb_close(db);
  rocksdb_compactionfilter_destroy(own);
  rocksdb_options_destroy(options);
  rocksdb_options_destroy(other);
  CHECK(destroyed == 2);
  destroy(path);
}

int main(int count, char** arguments) {
  if (count != 2) return 2;
  snprintf(path, sizeof path, "%s", arguments[1]);
  reads = rocksdb_readoptions_create();
  writes = rocksdb_writeoptions_create();
  read_beside();
  follow_updates();
  filter_values();
  rocksdb_readoptions_destroy(reads);
  rocksdb_writeoptions_destroy(writes);
  return 0;
}
