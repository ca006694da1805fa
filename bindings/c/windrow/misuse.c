/* Handles of windrow.h that are used wrongly: each ends the process with a sentence, if the library has debug assertions.

   usage: misuse FOLDER */

#include "../misuse.h"

#include "windrow.h"

static const char* folder;
static windrow_database* db;
static windrow_keyspace* keyspace;

/* Each child process opens the database: those of others have no threads there. */
static void open_keyspace(void) {
  CHECK(windrow_open(folder, NULL, &db, NULL) == WINDROW_OK);
  CHECK(windrow_keyspace_open(db, "main", &keyspace, NULL) == WINDROW_OK);
}

static void free_batch_twice(void) {
  windrow_batch* batch = windrow_batch_new();
  windrow_batch_free(batch);
  windrow_batch_free(batch);
}

static void use_batch_after_its_free(void) {
  windrow_batch* batch = windrow_batch_new();
  windrow_batch_free(batch);
  windrow_batch_count(batch);
}

static void write_batch_after_its_free(void) {
  open_keyspace();
  windrow_batch* batch = windrow_batch_new();
  windrow_batch_free(batch);
  windrow_batch_put(batch, keyspace, WINDROW_BYTES("a", 1), WINDROW_BYTES("b", 1), NULL);
}

static void pass_batch_as_options(void) {
  windrow_options_set_cache_bytes((windrow_options*)windrow_batch_new(), 1);
}

static void free_options_as_batch(void) { windrow_batch_free((windrow_batch*)windrow_options_new()); }

static void use_database_after_its_close(void) {
  open_keyspace();
  windrow_close(db, NULL);
  windrow_flush(db, NULL);
}

static void put_after_free(void) {
  open_keyspace();
  windrow_keyspace_free(keyspace);
  windrow_put(keyspace, WINDROW_BYTES("a", 1), WINDROW_BYTES("b", 1), WINDROW_DURABILITY_DEFAULT, NULL);
}

static void end_transaction_twice(void) {
  open_keyspace();
  windrow_transaction* transaction;
  windrow_transaction_begin(db, WINDROW_ISOLATION_SERIALIZABLE, &transaction, NULL);
  windrow_transaction_commit(transaction, WINDROW_DURABILITY_DEFAULT, NULL);
  windrow_transaction_roll_back(transaction);
}

static void move_cursor_after_its_free(void) {
  open_keyspace();
  windrow_cursor* cursor;
  windrow_range everything = {0};
  windrow_cursor_open(keyspace, NULL, everything, &cursor, NULL);
  windrow_cursor_free(cursor);
  windrow_cursor_next(cursor, NULL, NULL);
}

static void read_error_after_its_free(void) {
  windrow_error* error;
  windrow_flush(NULL, &error);
  windrow_error_free(error);
  windrow_error_code(error);
}

/* One of the next handles has the same address. */
static void free_handle_by_other_means(void) {
  for (int i = 0; i < 1000; i++) free(windrow_batch_new());
}

static void pass_memory_of_the_program(void) {
  static char memory[64];
  windrow_snapshot_free((windrow_snapshot*)memory);
}

int main(int count, char** arguments) {
  if (count != 2) return 2;
  folder = arguments[1];
  aborts("as a Batch", free_batch_twice);
  aborts("was released", free_batch_twice);
  aborts("was released", use_batch_after_its_free);
  aborts("is of the type Batch", pass_batch_as_options);
  aborts("is of the type Options", free_options_as_batch);
  aborts("as a Database", use_database_after_its_close);
  aborts("as a Keyspace", put_after_free);
  aborts("as a Batch", write_batch_after_its_free);
  aborts("as a Transaction", end_transaction_twice);
  aborts("as a Cursor", move_cursor_after_its_free);
  aborts("as a Error", read_error_after_its_free);
  aborts("never was a handle", pass_memory_of_the_program);
  aborts("not by its function", free_handle_by_other_means);
  return 0;
}
