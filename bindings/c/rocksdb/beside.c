/* What happens beside the writes of a program: secondary instances and read-only opens, updates since a sequence number.

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

int main(int count, char** arguments) {
  if (count != 2) return 2;
  snprintf(path, sizeof path, "%s", arguments[1]);
  reads = rocksdb_readoptions_create();
  writes = rocksdb_writeoptions_create();
  read_beside();
  follow_updates();
  rocksdb_readoptions_destroy(reads);
  rocksdb_writeoptions_destroy(writes);
  return 0;
}
