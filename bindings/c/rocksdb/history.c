/* Random histories of RocksDB's C interface: writes, batches, ranges, merges, snapshots, iterators, column families,
   transactions, reopens. Each answer is one line of the output, so two libraries that are given the same seed must print
   the same: the script programs.sh compares Windrow's with RocksDB's own.

   usage: history FOLDER SEED OPERATIONS */

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rocksdb/c.h"

enum { FAMILIES = 3, SNAPSHOTS = 3, KEY_BYTES_MAX = 6, VALUE_BYTES_MAX = 3000 };

static uint64_t state;
static unsigned long operation;
static const char* folder;
static rocksdb_options_t* options;
static rocksdb_transactiondb_options_t* locks;
static rocksdb_transactiondb_t* db;
static rocksdb_t* base;
static rocksdb_column_family_handle_t* families[FAMILIES];
static const rocksdb_snapshot_t* snapshots[SNAPSHOTS];
static rocksdb_writeoptions_t* writes;

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

/* One of few keys, so that histories meet them again. */
static size_t make_key(char* key) {
  static const char bytes[] = {0, 'a', 'b', (char)0x80, (char)0xff};
  size_t length = 1 + below(KEY_BYTES_MAX);
  for (size_t at = 0; at < length; at++) {
    key[at] = bytes[below(at < 2 ? sizeof bytes : 2)];
  }
  return length;
}

static size_t make_value(char* value) {
  size_t length = 1 + below(below(8) == 0 ? VALUE_BYTES_MAX - 1 : 100);
  memset(value, (int)below(256), length);
  return length;
}

static rocksdb_column_family_handle_t* any_family(void) { return families[below(FAMILIES)]; }

/* The merge operator appends the operands: it depends on their order. */
static char* fold(const char* base_value, size_t base_length, const char* const* operands,
                  const size_t* lengths, int count, unsigned char* success, size_t* length) {
  size_t total = base_length;
  char* result;
  for (int at = 0; at < count; at++) total += lengths[at];
  result = malloc(total + 1);
  *length = 0;
  if (base_value != NULL) {
    memcpy(result, base_value, base_length);
    *length = base_length;
  }
  for (int at = 0; at < count; at++) {
    memcpy(result + *length, operands[at], lengths[at]);
    *length += lengths[at];
  }
  *success = 1;
  return result;
}

static char* full_merge(void* none, const char* key, size_t key_length, const char* base_value,
                        size_t base_length, const char* const* operands, const size_t* lengths,
                        int count, unsigned char* success, size_t* length) {
  (void)none, (void)key, (void)key_length;
  return fold(base_value, base_length, operands, lengths, count, success, length);
}

static char* partial_merge(void* none, const char* key, size_t key_length,
                           const char* const* operands, const size_t* lengths, int count,
                           unsigned char* success, size_t* length) {
  (void)none, (void)key, (void)key_length;
  return fold(NULL, 0, operands, lengths, count, success, length);
}

static void destroy(void* none) { (void)none; }

static const char* name_of(void* none) {
  (void)none;
  return "history.append";
}

static void open_database(void) {
  static const char* names[FAMILIES] = {"default", "first", "second"};
  const rocksdb_options_t* all[FAMILIES] = {options, options, options};
  char* error = NULL;
  db = rocksdb_transactiondb_open_column_families(options, locks, folder, FAMILIES, names, all,
                                                  families, &error);
  check(error);
  base = rocksdb_transactiondb_get_base_db(db);
}

static void release_snapshot(size_t at) {
  if (snapshots[at] != NULL) rocksdb_transactiondb_release_snapshot(db, snapshots[at]);
  snapshots[at] = NULL;
}

static void close_database(void) {
  for (size_t at = 0; at < SNAPSHOTS; at++) release_snapshot(at);
  for (size_t at = 0; at < FAMILIES; at++) rocksdb_column_family_handle_destroy(families[at]);
  rocksdb_transactiondb_close_base_db(base);
  rocksdb_transactiondb_close(db);
}

static rocksdb_readoptions_t* any_reads(void) {
  rocksdb_readoptions_t* reads = rocksdb_readoptions_create();
  if (below(3) == 0) rocksdb_readoptions_set_snapshot(reads, snapshots[below(SNAPSHOTS)]);
  return reads;
}

static void print_entry(rocksdb_iterator_t* iterator) {
  size_t length;
  char* error = NULL;
  rocksdb_iter_get_error(iterator, &error);
  check(error);
  if (!rocksdb_iter_valid(iterator)) {
    printf("%lu no entry\n", operation);
    return;
  }
  const char* bytes = rocksdb_iter_key(iterator, &length);
  print_bytes("key", bytes, length);
  bytes = rocksdb_iter_value(iterator, &length);
  print_bytes("value", bytes, length);
}

static void walk(rocksdb_iterator_t* iterator) {
  char key[KEY_BYTES_MAX];
  for (size_t moves = 1 + below(30); moves > 0; moves--) {
    size_t move = below(12);
    if (move == 0) {
      rocksdb_iter_seek_to_first(iterator);
    } else if (move == 1) {
      rocksdb_iter_seek_to_last(iterator);
    } else if (move == 2) {
      rocksdb_iter_seek(iterator, key, make_key(key));
    } else if (move == 3) {
      rocksdb_iter_seek_for_prev(iterator, key, make_key(key));
    } else if (!rocksdb_iter_valid(iterator)) {
      continue;
    } else if (move < 8) {
      rocksdb_iter_next(iterator);
    } else {
      rocksdb_iter_prev(iterator);
    }
    print_entry(iterator);
  }
  rocksdb_iter_destroy(iterator);
}

static void iterate(void) {
  char lower[KEY_BYTES_MAX], upper[KEY_BYTES_MAX];
  rocksdb_readoptions_t* reads = any_reads();
  size_t lower_length = make_key(lower), upper_length = make_key(upper);
  if (below(2) == 0) rocksdb_readoptions_set_iterate_lower_bound(reads, lower, lower_length);
  if (below(2) == 0) rocksdb_readoptions_set_iterate_upper_bound(reads, upper, upper_length);
  walk(rocksdb_transactiondb_create_iterator_cf(db, reads, any_family()));
  rocksdb_readoptions_destroy(reads);
}

static void get(void) {
  char key[KEY_BYTES_MAX];
  char* error = NULL;
  size_t length = 0, key_length = make_key(key);
  rocksdb_readoptions_t* reads = any_reads();
  char* value = rocksdb_get_cf(base, reads, any_family(), key, key_length, &length, &error);
  check(error);
  print_bytes("get", value, length);
  rocksdb_free(value);
  rocksdb_readoptions_destroy(reads);
}

static void write_batch(void) {
  static char value[VALUE_BYTES_MAX];
  char key[KEY_BYTES_MAX], end[KEY_BYTES_MAX];
  char* error = NULL;
  const char* bytes;
  size_t length;
  rocksdb_writebatch_t* batch = rocksdb_writebatch_create();
  for (size_t count = below(20); count > 0; count--) {
    rocksdb_column_family_handle_t* family = any_family();
    size_t key_length = make_key(key), kind = below(12);
    if (kind < 6) {
      rocksdb_writebatch_put_cf(batch, family, key, key_length, value, make_value(value));
    } else if (kind < 8) {
      rocksdb_writebatch_delete_cf(batch, family, key, key_length);
    } else if (kind < 10) {
      rocksdb_writebatch_merge_cf(batch, family, key, key_length, value, 1 + below(9));
    } else if (kind == 10) {
      size_t end_length = make_key(end);
      size_t shorter = key_length < end_length ? key_length : end_length;
      int order = memcmp(key, end, shorter);
      if (order < 0 || (order == 0 && key_length <= end_length)) {
        rocksdb_writebatch_delete_range_cf(batch, family, key, key_length, end, end_length);
      }
    } else {
      rocksdb_writebatch_set_save_point(batch);
      rocksdb_writebatch_put_cf(batch, family, key, key_length, "x", 1);
      rocksdb_writebatch_rollback_to_save_point(batch, &error);
      check(error);
    }
  }
  /* The bytes are those of RocksDB, too. */
  bytes = rocksdb_writebatch_data(batch, &length);
  print_bytes("batch", bytes, length);
  printf("%lu writes %d\n", operation, rocksdb_writebatch_count(batch));
  rocksdb_write(base, writes, batch, &error);
  check(error);
  rocksdb_writebatch_destroy(batch);
}

static void write_one(void) {
  static char value[VALUE_BYTES_MAX];
  char key[KEY_BYTES_MAX];
  char* error = NULL;
  rocksdb_column_family_handle_t* family = any_family();
  size_t key_length = make_key(key), length = make_value(value);
  switch (below(4)) {
    case 0:
      rocksdb_transactiondb_delete_cf(db, writes, family, key, key_length, &error);
      break;
    case 1:
      rocksdb_transactiondb_merge_cf(db, writes, family, key, key_length, value, 5, &error);
      break;
    default:
      rocksdb_transactiondb_put_cf(db, writes, family, key, key_length, value, length, &error);
  }
  check(error);
}

/* A transaction with savepoints, reads and an iterator, while nobody else writes its keys. */
static void transact(void) {
  static char value[VALUE_BYTES_MAX];
  char key[KEY_BYTES_MAX];
  char* error = NULL;
  size_t length, points = 0;
  rocksdb_transaction_options_t* begin = rocksdb_transaction_options_create();
  rocksdb_readoptions_t* reads = rocksdb_readoptions_create();
  rocksdb_transaction_t* transaction = rocksdb_transaction_begin(db, writes, begin, NULL);
  for (size_t count = below(25); count > 0; count--) {
    rocksdb_column_family_handle_t* family = any_family();
    size_t key_length = make_key(key);
    switch (below(8)) {
      case 0:
        rocksdb_transaction_delete_cf(transaction, family, key, key_length, &error);
        break;
      case 1:
        rocksdb_transaction_merge_cf(transaction, family, key, key_length, "merged", 6, &error);
        break;
      case 2: {
        char* found = rocksdb_transaction_get_cf(transaction, reads, family, key, key_length,
                                                 &length, &error);
        check(error);
        print_bytes("transaction get", found, length);
        rocksdb_free(found);
        break;
      }
      case 3: {
        char* found = rocksdb_transaction_get_for_update_cf(
            transaction, reads, family, key, key_length, &length, (unsigned char)below(2), &error);
        check(error);
        print_bytes("transaction get for update", found, length);
        rocksdb_free(found);
        break;
      }
      case 4:
        walk(rocksdb_transaction_create_iterator_cf(transaction, reads, family));
        break;
      case 5:
        if (points > 0 && below(2) == 0) {
          points--;
          rocksdb_transaction_rollback_to_savepoint(transaction, &error);
        } else {
          points++;
          rocksdb_transaction_set_savepoint(transaction);
        }
        break;
      default:
        length = make_value(value);
        rocksdb_transaction_put_cf(transaction, family, key, key_length, value, length, &error);
    }
    check(error);
  }
  if (below(4) == 0) {
    rocksdb_transaction_rollback(transaction, &error);
  } else {
    rocksdb_transaction_commit(transaction, &error);
  }
  check(error);
  rocksdb_transaction_destroy(transaction);
  rocksdb_readoptions_destroy(reads);
  rocksdb_transaction_options_destroy(begin);
}

static void maintain(void) {
  char* error = NULL;
  switch (below(4)) {
    case 0: {
      rocksdb_flushoptions_t* waits = rocksdb_flushoptions_create();
      rocksdb_transactiondb_flush_cf(db, waits, any_family(), &error);
      check(error);
      rocksdb_flushoptions_destroy(waits);
      break;
    }
    case 1:
      rocksdb_compact_range_cf(base, any_family(), NULL, 0, NULL, 0);
      break;
    case 2:
      close_database();
      open_database();
      break;
    default:
      printf("%lu families %u\n", operation, rocksdb_column_family_handle_get_id(any_family()));
  }
}

int main(int count, char** arguments) {
  char* error = NULL;
  if (count != 4) return 2;
  folder = arguments[1];
  state = strtoull(arguments[2], NULL, 10) * 2654435761u + 88172645463325252u;
  options = rocksdb_options_create();
  locks = rocksdb_transactiondb_options_create();
  writes = rocksdb_writeoptions_create();
  rocksdb_destroy_db(options, folder, &error);
  check(error);
  rocksdb_options_set_create_if_missing(options, 1);
  rocksdb_options_set_create_missing_column_families(options, 1);
  rocksdb_options_set_write_buffer_size(options, 65536);
  rocksdb_options_set_compression(options, rocksdb_no_compression);
  rocksdb_options_set_merge_operator(
      options, rocksdb_mergeoperator_create(NULL, destroy, full_merge, partial_merge, NULL, name_of));
  open_database();
  for (unsigned long last = strtoul(arguments[3], NULL, 10); operation < last; operation++) {
    switch (below(16)) {
      case 0:
      case 1:
        write_batch();
        break;
      case 2:
      case 3:
        transact();
        break;
      case 4:
      case 5:
        iterate();
        break;
      case 6: {
        size_t at = below(SNAPSHOTS);
        release_snapshot(at);
        if (below(3) > 0) snapshots[at] = rocksdb_transactiondb_create_snapshot(db);
        break;
      }
      case 7:
        if (below(4) == 0) maintain();
        break;
      case 8:
      case 9:
      case 10:
        get();
        break;
      default:
        write_one();
    }
  }
  close_database();
  rocksdb_destroy_db(options, folder, &error);
  check(error);
  rocksdb_writeoptions_destroy(writes);
  rocksdb_transactiondb_options_destroy(locks);
  rocksdb_options_destroy(options);
  return 0;
}
