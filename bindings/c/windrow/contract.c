/* The contract suite of all bindings by the functions of windrow.h: see bindings/contract/README.md.

   usage: contract SUITE FOLDER: suite.json, and an empty folder

   One step has no counterpart: a call with the database after its close, because the close takes the handle. */

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "windrow.h"

/* Where the program is in the suite, for messages. */
static const char* history_name = "";
static int step_number;

#define CHECK(condition)                                                                      \
  do {                                                                                        \
    if (!(condition)) {                                                                       \
      fprintf(stderr, "%s, step %d: %s:%d: %s\n", history_name, step_number, __FILE__, __LINE__, \
              #condition);                                                                    \
      exit(1);                                                                                \
    }                                                                                         \
  } while (0)

/* JSON as the suite has it: its texts have no escapes. */
typedef struct node node;
struct node {
  /* '{', '[', '"', or the first character of a number, true, false or null. */
  char kind;
  /* In an object. */
  const char* name;
  size_t name_length;
  /* Of a text or a number. */
  const char* text;
  size_t length;
  node *first, *next;
  /* The one that was made before. */
  node* before;
};

static node* made;

static const char* skip_blanks(const char* at) { return at + strspn(at, " \n"); }

static const char* read_text(const char* at, const char** text, size_t* length) {
  CHECK(*at == '"');
  *text = at + 1;
  *length = strcspn(*text, "\"\\");
  CHECK((*text)[*length] == '"');
  return *text + *length + 1;
}

static const char* read_node(const char* at, node** read) {
  node* one = calloc(1, sizeof *one);
  CHECK(one != NULL);
  one->before = made;
  *read = made = one;
  at = skip_blanks(at);
  one->kind = *at;
  if (*at == '"') return read_text(at, &one->text, &one->length);
  if (*at != '{' && *at != '[') {
    one->text = at;
    one->length = strcspn(at, ",]} \n");
    CHECK(one->length > 0);
    return at + one->length;
  }
  char end = *at == '{' ? '}' : ']';
  node** last = &one->first;
  for (at = skip_blanks(at + 1); *at != end; at = skip_blanks(at)) {
    const char* name = NULL;
    size_t length = 0;
    if (end == '}') {
      at = skip_blanks(read_text(at, &name, &length));
      CHECK(*at == ':');
      at++;
    }
    at = skip_blanks(read_node(at, last));
    (*last)->name = name;
    (*last)->name_length = length;
    last = &(*last)->next;
    CHECK(*at == ',' || *at == end);
    if (*at == ',') at++;
  }
  return at + 1;
}

static bool is(const char* text, size_t length, const char* expected) {
  return length == strlen(expected) && memcmp(text, expected, length) == 0;
}

/* The member of an object, or null. */
static const node* member(const node* object, const char* name) {
  for (const node* one = object->first; one != NULL; one = one->next) {
    if (is(one->name, one->name_length, name)) return one;
  }
  return NULL;
}

static bool says(const node* object, const char* name, const char* expected) {
  const node* found = member(object, name);
  return found != NULL && is(found->text, found->length, expected);
}

/* Whether the member is there, and neither null nor false. */
static bool has(const node* object, const char* name) {
  const node* found = member(object, name);
  return found != NULL && found->kind != 'n' && found->kind != 'f';
}

/* A number of a step, or 0. */
static uint64_t long_number(const node* object, const char* name) {
  return has(object, name) ? strtoull(member(object, name)->text, NULL, 10) : 0;
}

/* The number of an object that a step names, or 0. */
static size_t number(const node* object, const char* name) {
  uint64_t number = long_number(object, name);
  CHECK(number < 1000);
  return (size_t)number;
}

/* The bytes of the present step. */
static void* scratch[256];
static size_t scratch_count;

static int digit(char letter) {
  const char* digits = "0123456789abcdef";
  const char* found = strchr(digits, letter);
  CHECK(letter != 0 && found != NULL);
  return (int)(found - digits);
}

/* The bytes that a value of the suite stands for. Null has none, and no bytes are not null. */
static windrow_bytes bytes_of(const node* value) {
  windrow_bytes bytes = {NULL, 0};
  CHECK(value != NULL);
  if (value->kind == 'n') return bytes;
  const node* digits = value->kind == '{' ? member(value, "byte") : value;
  size_t times = value->kind == '{' ? strtoul(member(value, "times")->text, NULL, 10) : 1;
  CHECK(digits != NULL && digits->kind == '"' && digits->length % 2 == 0);
  size_t length = digits->length / 2;
  uint8_t* made = malloc(length * times + 1);
  CHECK(made != NULL && scratch_count < sizeof scratch / sizeof *scratch);
  scratch[scratch_count++] = made;
  for (size_t i = 0; i < length * times; i++) {
    const char* pair = digits->text + 2 * (i % length);
    made[i] = (uint8_t)(16 * digit(pair[0]) + digit(pair[1]));
  }
  bytes.data = made;
  bytes.length = length * times;
  return bytes;
}

static windrow_bytes bytes_in(const node* step, const char* name) { return bytes_of(member(step, name)); }

static void check_bytes(windrow_bytes found, windrow_bytes expected) {
  CHECK(found.length == expected.length);
  CHECK(found.length == 0 || memcmp(found.data, expected.data, found.length) == 0);
}

/* A consumer, with the numbers of the changes that it has read last. */
struct follower {
  windrow_consumer* consumer;
  uint64_t read[100];
  size_t count;
};

/* The handles of a history, by their numbers. */
static const char* path;
/* When it began, in milliseconds since the start of 1970. */
static uint64_t began;
static windrow_options* options;
static windrow_database* db;
static windrow_keyspace *keyspace_main, *keyspace_lists;
static windrow_snapshot* snapshots[1000];
static windrow_transaction* transactions[1000];
static size_t savepoints[1000];
static struct follower followers[2];
static bool is_closed;

static void open_database(void) {
  CHECK(windrow_open(path, options, &db, NULL) == WINDROW_OK);
  CHECK(windrow_keyspace_open(db, "main", &keyspace_main, NULL) == WINDROW_OK);
  CHECK(windrow_keyspace_open(db, "lists", &keyspace_lists, NULL) == WINDROW_OK);
}

static void close_database(void) {
  if (!is_closed) CHECK(windrow_close(db, NULL) == WINDROW_OK);
  db = NULL;
  is_closed = true;
}

static void free_handles(void) {
  close_database();
  for (size_t i = 0; i < 1000; i++) {
    windrow_snapshot_free(snapshots[i]);
    windrow_transaction_roll_back(transactions[i]);
    snapshots[i] = NULL;
    transactions[i] = NULL;
  }
  for (size_t i = 0; i < 2; i++) {
    windrow_consumer_free(followers[i].consumer);
    followers[i].consumer = NULL;
  }
  windrow_keyspace_free(keyspace_main);
  windrow_keyspace_free(keyspace_lists);
  is_closed = false;
}

static windrow_keyspace* keyspace_of(const node* step) {
  if (says(step, "keyspace", "main")) return keyspace_main;
  CHECK(says(step, "keyspace", "lists"));
  return keyspace_lists;
}

static windrow_range range_of(const node* step) {
  windrow_range range = {bytes_in(step, "start"), bytes_in(step, "end")};
  return range;
}

static int write_in_batch(windrow_batch* batch, const node* write, windrow_error** error) {
  windrow_keyspace* keyspace = keyspace_of(write);
  uint64_t ttl = long_number(write, "ttl");
  if (ttl > 0) {
    return windrow_batch_put_with_ttl(batch, keyspace, bytes_in(write, "key"), bytes_in(write, "value"), ttl, error);
  }
  if (says(write, "do", "put")) {
    return windrow_batch_put(batch, keyspace, bytes_in(write, "key"), bytes_in(write, "value"), error);
  }
  if (says(write, "do", "delete")) return windrow_batch_delete(batch, keyspace, bytes_in(write, "key"), error);
  if (says(write, "do", "merge")) {
    return windrow_batch_merge(batch, keyspace, bytes_in(write, "key"), bytes_in(write, "operand"), error);
  }
  CHECK(says(write, "do", "delete_range"));
  return windrow_batch_delete_range(batch, keyspace, range_of(write), error);
}

static int write_batch(const node* step, windrow_error** error) {
  windrow_batch* batch = windrow_batch_new();
  int code = WINDROW_OK;
  for (const node* write = member(step, "writes")->first; write != NULL && code == WINDROW_OK; write = write->next) {
    code = write_in_batch(batch, write, error);
  }
  if (code == WINDROW_OK) code = windrow_batch_write(db, batch, WINDROW_DURABILITY_DEFAULT, error);
  windrow_batch_free(batch);
  return code;
}

static void check_value(const windrow_value* value, windrow_bytes expected) {
  CHECK((value == NULL) == (expected.data == NULL));
  check_bytes(windrow_value_bytes(value), expected);
}

static int get(const node* step, windrow_error** error) {
  windrow_transaction* transaction = transactions[number(step, "transaction")];
  uint32_t intent = has(step, "for_update") ? WINDROW_READ_FOR_UPDATE : WINDROW_READ_PLAIN;
  windrow_bytes key = bytes_in(step, "key");
  windrow_value* value = NULL;
  int code = transaction != NULL
                 ? windrow_transaction_get(transaction, keyspace_of(step), key, intent, &value, error)
                 : windrow_get(keyspace_of(step), snapshots[number(step, "snapshot")], key, &value, error);
  if (code == WINDROW_OK) check_value(value, bytes_in(step, "value"));
  windrow_value_free(value);
  return code;
}

static int multi_get(const node* step, windrow_error** error) {
  windrow_bytes keys[16];
  windrow_value* values[16];
  size_t count = 0;
  for (const node* key = member(step, "keys")->first; key != NULL; key = key->next) {
    CHECK(count < 16);
    keys[count++] = bytes_of(key);
  }
  int code = windrow_multi_get(keyspace_of(step), snapshots[number(step, "snapshot")], keys, values, count, error);
  const node* expected = code == WINDROW_OK ? member(step, "values")->first : NULL;
  for (size_t i = 0; i < count; i++) {
    if (code == WINDROW_OK) {
      check_value(values[i], bytes_of(expected));
      expected = expected->next;
    }
    windrow_value_free(values[i]);
  }
  return code;
}

/* Compares with the time to live of a step. It has whole hours, and no history takes as long. */
static void check_expiry(uint64_t expiry, const node* step) {
  uint64_t ttl = long_number(step, "ttl"), hour = 3600000;
  if (ttl == 0) {
    CHECK(expiry == WINDROW_EXPIRY_NEVER);
  } else {
    CHECK((expiry - began + hour / 2) / hour * hour == ttl);
  }
}

static int expires_at(const node* step, windrow_error** error) {
  uint64_t expiry = 0;
  int code = windrow_expires_at(keyspace_of(step), NULL, bytes_in(step, "key"), &expiry, error);
  if (code != WINDROW_OK) return code;
  CHECK((expiry == WINDROW_EXPIRY_ABSENT) == !has(step, "exists"));
  if (expiry != WINDROW_EXPIRY_ABSENT) check_expiry(expiry, step);
  return code;
}

/* A change of one key on a condition. */
static int change_one(const node* step, windrow_error** error) {
  windrow_bytes key = bytes_in(step, "key"), value = bytes_in(step, "value");
  bool done = false;
  int code = says(step, "do", "put_if_absent")
                 ? windrow_put_if_absent(keyspace_of(step), key, value, &done, error)
                 : windrow_compare_and_swap(keyspace_of(step), key, bytes_in(step, "expected"), value, &done, error);
  if (code == WINDROW_OK) CHECK(done == has(step, "done"));
  return code;
}

/* A cursor that the step reads by. */
static int open_cursor(const node* step, windrow_range range, windrow_cursor** cursor, windrow_error** error) {
  windrow_transaction* transaction = transactions[number(step, "transaction")];
  if (transaction != NULL) return windrow_transaction_cursor_open(transaction, keyspace_of(step), range, cursor, error);
  return windrow_cursor_open(keyspace_of(step), snapshots[number(step, "snapshot")], range, cursor, error);
}

static int scan(const node* step, windrow_error** error) {
  windrow_cursor* cursor = NULL;
  int code = open_cursor(step, range_of(step), &cursor, error);
  if (code != WINDROW_OK) return code;
  bool backward = member(step, "reverse")->kind == 't', valid = false;
  code = backward ? windrow_cursor_seek_to_last(cursor, &valid, error)
                  : windrow_cursor_seek_to_first(cursor, &valid, error);
  const node* entries = member(step, "entries");
  const node* entry = entries == NULL ? NULL : entries->first;
  while (code == WINDROW_OK && valid) {
    CHECK(entry != NULL);
    windrow_bytes value;
    check_bytes(windrow_cursor_key(cursor), bytes_of(entry->first));
    code = windrow_cursor_value(cursor, &value, error);
    if (code != WINDROW_OK) break;
    check_bytes(value, bytes_of(entry->first->next));
    entry = entry->next;
    code = backward ? windrow_cursor_prev(cursor, &valid, error) : windrow_cursor_next(cursor, &valid, error);
  }
  CHECK(code != WINDROW_OK || entry == NULL);
  windrow_cursor_free(cursor);
  return code;
}

static int neighbors(const node* step, windrow_error** error) {
  static const windrow_range everything;
  windrow_cursor* cursor = NULL;
  bool valid = false;
  int code = open_cursor(step, everything, &cursor, error);
  if (code == WINDROW_OK) code = windrow_cursor_seek(cursor, bytes_in(step, "key"), &valid, error);
  if (code == WINDROW_OK) {
    windrow_bytes after = bytes_in(step, "after");
    CHECK(valid == (after.data != NULL));
    check_bytes(windrow_cursor_key(cursor), after);
    code = valid ? windrow_cursor_prev(cursor, &valid, error) : windrow_cursor_seek_to_last(cursor, &valid, error);
  }
  if (code == WINDROW_OK) {
    windrow_bytes before = bytes_in(step, "before");
    CHECK(valid == (before.data != NULL));
    check_bytes(windrow_cursor_key(cursor), before);
  }
  windrow_cursor_free(cursor);
  return code;
}

static int write_one(const node* step, windrow_error** error) {
  windrow_transaction* in = transactions[number(step, "transaction")];
  windrow_keyspace* keyspace = keyspace_of(step);
  if (says(step, "do", "delete_range")) {
    windrow_range range = range_of(step);
    return in != NULL ? windrow_transaction_delete_range(in, keyspace, range, error)
                      : windrow_delete_range(keyspace, range, WINDROW_DURABILITY_DEFAULT, error);
  }
  windrow_bytes key = bytes_in(step, "key");
  if (says(step, "do", "delete")) {
    return in != NULL ? windrow_transaction_delete(in, keyspace, key, error)
                      : windrow_delete(keyspace, key, WINDROW_DURABILITY_DEFAULT, error);
  }
  if (says(step, "do", "put")) {
    windrow_bytes value = bytes_in(step, "value");
    uint64_t ttl = long_number(step, "ttl");
    if (ttl > 0) {
      return in != NULL ? windrow_transaction_put_with_ttl(in, keyspace, key, value, ttl, error)
                        : windrow_put_with_ttl(keyspace, key, value, ttl, WINDROW_DURABILITY_DEFAULT, error);
    }
    return in != NULL ? windrow_transaction_put(in, keyspace, key, value, error)
                      : windrow_put(keyspace, key, value, WINDROW_DURABILITY_DEFAULT, error);
  }
  CHECK(says(step, "do", "merge"));
  windrow_bytes operand = bytes_in(step, "operand");
  return in != NULL ? windrow_transaction_merge(in, keyspace, key, operand, error)
                    : windrow_merge(keyspace, key, operand, WINDROW_DURABILITY_DEFAULT, error);
}

/* A name of a step, until the next one. */
static const char* name_of(const node* name) {
  static char text[64];
  CHECK(name->length < sizeof text);
  snprintf(text, sizeof text, "%.*s", (int)name->length, name->text);
  return text;
}

static const char* name_in(const node* step) { return name_of(member(step, "name")); }

/* How long a transaction waits for each lock, in milliseconds. */
static uint64_t lock_timeout;

static int transact(const node* step, windrow_error** error) {
  windrow_transaction** transaction = &transactions[number(step, "transaction")];
  if (says(step, "isolation", "locking")) {
    return windrow_transaction_begin_locking(db, lock_timeout, transaction, error);
  }
  if (says(step, "do", "begin")) {
    uint32_t isolation =
        says(step, "isolation", "snapshot") ? WINDROW_ISOLATION_SNAPSHOT : WINDROW_ISOLATION_SERIALIZABLE;
    return windrow_transaction_begin(db, isolation, transaction, error);
  }
  if (says(step, "do", "savepoint")) {
    return windrow_transaction_savepoint(*transaction, &savepoints[number(step, "savepoint")], error);
  }
  if (says(step, "do", "roll_back_to")) {
    return windrow_transaction_roll_back_to(*transaction, savepoints[number(step, "savepoint")], error);
  }
  windrow_transaction* ended = *transaction;
  *transaction = NULL;
  if (says(step, "do", "commit")) return windrow_transaction_commit(ended, WINDROW_DURABILITY_DEFAULT, error);
  if (says(step, "do", "prepare")) return windrow_transaction_prepare(ended, name_in(step), error);
  CHECK(says(step, "do", "roll_back"));
  windrow_transaction_roll_back(ended);
  return WINDROW_OK;
}

/* Compares names of `json` with those of a step: of all texts that are alone, or the values of `name`. */
static int check_names(const node* step, int code, char* json) {
  if (code != WINDROW_OK) return code;
  node* found;
  read_node(json, &found);
  const node* one = found->first;
  for (const node* name = member(step, "names")->first; name != NULL; name = name->next) {
    CHECK(one != NULL);
    const node* text = one->kind == '{' ? member(one, "name") : one;
    CHECK(text->kind == '"' && is(text->text, text->length, name_of(name)));
    one = one->next;
  }
  CHECK(one == NULL);
  windrow_text_free(json);
  return code;
}

static int end_prepared(const node* step, windrow_error** error) {
  char* json = NULL;
  if (says(step, "do", "commit_prepared")) {
    return windrow_commit_prepared(db, name_in(step), WINDROW_DURABILITY_DEFAULT, error);
  }
  if (says(step, "do", "roll_back_prepared")) {
    return windrow_roll_back_prepared(db, name_in(step), WINDROW_DURABILITY_DEFAULT, error);
  }
  int code = windrow_prepared_names_json(db, &json, error);
  return check_names(step, code, json);
}

/* Compares a write of a change with that of the suite. `state` is where the latter is. */
static bool check_change(void* state, const windrow_write* write) {
  const node** expected = state;
  const node* one = *expected;
  static const char* const kinds[] = {"put", "delete", "merge", "delete_range"};
  CHECK(one != NULL && write->kind < sizeof kinds / sizeof *kinds && says(one, "do", kinds[write->kind]));
  const node* keyspace = member(one, "keyspace");
  CHECK(write->keyspace.length == keyspace->length);
  CHECK(memcmp(write->keyspace.data, keyspace->text, keyspace->length) == 0);
  bool is_range = write->kind == WINDROW_WRITE_DELETE_RANGE;
  check_bytes(write->key, bytes_in(one, is_range ? "start" : "key"));
  if (is_range) {
    windrow_bytes end = bytes_in(one, "end");
    CHECK((write->value.data == NULL) == (end.data == NULL));
    check_bytes(write->value, end);
  }
  if (write->kind == WINDROW_WRITE_MERGE) check_bytes(write->value, bytes_in(one, "operand"));
  if (write->kind == WINDROW_WRITE_PUT) {
    check_bytes(write->value, bytes_in(one, "value"));
    check_expiry(write->expiry, one);
  }
  *expected = one->next;
  return true;
}

static int read_changes(const node* step, struct follower* follower, windrow_error** error) {
  windrow_changes* changes = NULL;
  windrow_change* change = NULL;
  int code = windrow_consumer_changes(follower->consumer, &changes, error);
  if (code != WINDROW_OK) return code;
  const node* expected = member(step, "changes")->first;
  follower->count = 0;
  while ((code = windrow_changes_next(changes, 0, &change, error)) == WINDROW_OK && change != NULL) {
    CHECK(expected != NULL && windrow_change_kind(change) == WINDROW_CHANGE_BATCH);
    const node* write = expected->first;
    CHECK(windrow_change_visit(change, check_change, &write, NULL) == WINDROW_OK && write == NULL);
    uint64_t sequence = windrow_change_sequence(change);
    CHECK(sequence + 1 - windrow_change_first_sequence(change) == windrow_change_count(change));
    CHECK(follower->count < sizeof follower->read / sizeof *follower->read);
    follower->read[follower->count++] = sequence;
    windrow_change_free(change);
    expected = expected->next;
  }
  CHECK(code != WINDROW_OK || expected == NULL);
  windrow_changes_free(changes);
  return code;
}

static int follow(const node* step, windrow_error** error) {
  if (says(step, "do", "consumer_names")) {
    char* json = NULL;
    int code = windrow_consumers_json(db, &json, error);
    return check_names(step, code, json);
  }
  struct follower* follower = &followers[says(step, "name", "two")];
  CHECK(follower == &followers[1] || says(step, "name", "one"));
  if (says(step, "do", "changes")) return read_changes(step, follower, error);
  if (says(step, "do", "remove_consumer")) return windrow_consumer_remove(db, name_in(step), error);
  if (says(step, "do", "acknowledge")) {
    size_t count = number(step, "count");
    CHECK(count > 0 && count <= follower->count);
    uint64_t sequence = follower->read[count - 1], place = 0;
    int code = windrow_consumer_acknowledge(follower->consumer, sequence, error);
    if (code == WINDROW_OK) CHECK(windrow_consumer_acknowledged(follower->consumer, &place, NULL) == WINDROW_OK);
    CHECK(code != WINDROW_OK || place == sequence);
    return code;
  }
  windrow_consumer_free(follower->consumer);
  return windrow_consumer_open(db, name_in(step), &follower->consumer, error);
}

static int administer(const node* step, windrow_error** error) {
  static const windrow_range everything;
  if (says(step, "do", "snapshot")) return windrow_snapshot_new(db, &snapshots[number(step, "snapshot")], error);
  if (says(step, "do", "release")) {
    windrow_snapshot_free(snapshots[number(step, "snapshot")]);
    snapshots[number(step, "snapshot")] = NULL;
    return WINDROW_OK;
  }
  if (says(step, "do", "flush")) return windrow_flush(db, error);
  if (says(step, "do", "compact")) return windrow_compact_range(keyspace_of(step), everything, error);
  if (says(step, "do", "open_again")) return windrow_open(path, NULL, NULL, error);
  if (says(step, "do", "close")) {
    close_database();
    return WINDROW_OK;
  }
  CHECK(says(step, "do", "reopen"));
  free_handles();
  open_database();
  return WINDROW_OK;
}

static bool is_one_of(const node* step, const char* names) {
  const node* what = member(step, "do");
  char name[32];
  snprintf(name, sizeof name, " %.*s ", (int)what->length, what->text);
  return strstr(names, name) != NULL;
}

static int run(const node* step, windrow_error** error) {
  if (is_one_of(step, " put delete merge delete_range ")) return write_one(step, error);
  if (is_one_of(step, " begin commit roll_back savepoint roll_back_to prepare ")) return transact(step, error);
  if (is_one_of(step, " commit_prepared roll_back_prepared prepared_names ")) return end_prepared(step, error);
  if (is_one_of(step, " consumer consumer_names changes acknowledge remove_consumer ")) return follow(step, error);
  if (is_one_of(step, " put_if_absent compare_and_swap ")) return change_one(step, error);
  if (says(step, "do", "batch")) return write_batch(step, error);
  if (says(step, "do", "get")) return get(step, error);
  if (says(step, "do", "multi_get")) return multi_get(step, error);
  if (says(step, "do", "expires_at")) return expires_at(step, error);
  if (says(step, "do", "scan")) return scan(step, error);
  if (says(step, "do", "neighbors")) return neighbors(step, error);
  return administer(step, error);
}

/* The code of the error that a step has. */
static int expected_code(const node* step) {
  static const struct {
    const char* name;
    int code;
  } kinds[] = {{"InvalidArgument", WINDROW_INVALID_ARGUMENT},
               {"Closed", WINDROW_CLOSED},
               {"Conflict", WINDROW_CONFLICT},
               {"Locked", WINDROW_LOCKED},
               {"AlreadyExists", WINDROW_ALREADY_EXISTS},
               {"NotFound", WINDROW_NOT_FOUND},
               {"TimedOut", WINDROW_TIMED_OUT}};
  if (member(step, "error") == NULL) return WINDROW_OK;
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
    if (says(step, "error", kinds[i].name)) return kinds[i].code;
  }
  CHECK(!"the suite has a kind of errors that this program does not know");
  return -1;
}

static void check_step(const node* step) {
  windrow_error* error = NULL;
  int code = run(step, &error);
  if (code != expected_code(step)) {
    const node* what = member(step, "do");
    fprintf(stderr, "%s, step %d: %.*s: code %d: %s\n", history_name, step_number, (int)what->length, what->text, code,
            windrow_error_message(error));
    exit(1);
  }
  CHECK(windrow_error_code(error) == code);
  windrow_error_free(error);
  while (scratch_count > 0) free(scratch[--scratch_count]);
}

static char* content_of(const char* file) {
  FILE* opened = fopen(file, "rb");
  CHECK(opened != NULL && fseek(opened, 0, SEEK_END) == 0);
  long length = ftell(opened);
  CHECK(length > 0 && fseek(opened, 0, SEEK_SET) == 0);
  char* content = calloc((size_t)length + 1, 1);
  CHECK(content != NULL && fread(content, 1, (size_t)length, opened) == (size_t)length);
  fclose(opened);
  return content;
}

static void set_options(const node* suite) {
  options = windrow_options_new();
  lock_timeout = long_number(suite, "lock_timeout");
  windrow_options_set_lock_timeout(options, lock_timeout);
  for (const node* one = member(suite, "merge_operators")->first; one != NULL; one = one->next) {
    char keyspace[64], operator_name[64];
    snprintf(keyspace, sizeof keyspace, "%.*s", (int)one->name_length, one->name);
    snprintf(operator_name, sizeof operator_name, "%.*s", (int)one->length, one->text);
    CHECK(windrow_options_set_merge_operator(options, keyspace, operator_name, NULL) == WINDROW_OK);
  }
}

int main(int count, char** arguments) {
  if (count != 3) {
    fprintf(stderr, "usage: contract SUITE FOLDER\n");
    return 2;
  }
  char* content = content_of(arguments[1]);
  node* suite;
  read_node(content, &suite);
  set_options(suite);
  int histories = 0, steps = 0, errors = 0, passed_over = 0;
  for (const node* history = member(suite, "histories")->first; history != NULL; history = history->next) {
    char name[64], folder[1024];
    snprintf(name, sizeof name, "%.*s", (int)member(history, "name")->length, member(history, "name")->text);
    snprintf(folder, sizeof folder, "%s/%d", arguments[2], histories++);
    history_name = name;
    path = folder;
    step_number = 0;
    began = 1000 * (uint64_t)time(NULL);
    open_database();
    for (const node* step = member(history, "steps")->first; step != NULL; step = step->next, step_number++) {
      steps++;
      errors += member(step, "error") != NULL;
      if (is_closed && says(step, "do", "flush")) {
        passed_over++;
      } else {
        check_step(step);
      }
    }
    free_handles();
  }
  windrow_options_free(options);
  while (made != NULL) {
    node* before = made->before;
    free(made);
    made = before;
  }
  free(content);
  CHECK(histories > 0 && steps > 1000 && errors > 20 && passed_over == 1);
  printf("%d histories with %d steps, %d of them errors\n", histories, steps - passed_over, errors - passed_over);
  return 0;
}
