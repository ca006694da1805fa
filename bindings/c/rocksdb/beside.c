/* What happens beside the writes of a program: secondary instances and read-only opens.

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

int main(int count, char** arguments) {
  if (count != 2) return 2;
  snprintf(path, sizeof path, "%s", arguments[1]);
  reads = rocksdb_readoptions_create();
  writes = rocksdb_writeoptions_create();
  read_beside();
  rocksdb_readoptions_destroy(reads);
  rocksdb_writeoptions_destroy(writes);
  return 0;
}
