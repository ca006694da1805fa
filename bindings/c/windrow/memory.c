/* Opens, cursors and errors leave no memory behind, however many there are.

   usage: memory FOLDER: an empty folder, best one in memory, since an open syncs

   The environment variable WINDROW_TIMES says how often each is made. Without it there are 2,000 opens, 100,000 cursors
   and 100,000 errors. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "windrow.h"

#if defined(__GLIBC__) && __GLIBC_PREREQ(2, 33)
#include <malloc.h>
#define COUNTS_ALLOCATED 1
#endif

/* What the memory budget of a database and the allocator take and give back as they like, in bytes. */
#define RESIDENT_SLACK_BYTES (2L << 20)
/* However often: background work of the open database has buffers, and the allocator keeps small pieces for each thread, which
   count as allocated. */
#define ALLOCATED_SLACK_BYTES (256L << 10)

static void check(int code, windrow_error* error) {
  if (code == WINDROW_OK) return;
  fprintf(stderr, "%s\n", windrow_error_message(error));
  exit(1);
}

static long resident_bytes(void) {
  long total, resident;
  FILE* file = fopen("/proc/self/statm", "r");
  if (file == NULL || fscanf(file, "%ld %ld", &total, &resident) != 2) {
    puts("skipped: there is no /proc/self/statm");
    exit(0);
  }
  fclose(file);
  return resident * sysconf(_SC_PAGESIZE);
}

/* What is allocated now; 0 if the allocator does not tell. What it keeps for later does not count, unlike in what is resident. */
static long allocated_bytes(void) {
#ifdef COUNTS_ALLOCATED
  struct mallinfo2 all = mallinfo2();
  return (long)(all.uordblks + all.hblkhd);
#else
  return 0;
#endif
}

struct state {
  const char* folder;
  windrow_options* options;
  windrow_keyspace* keyspace;
};

static void open_and_close(struct state* state) {
  windrow_error* error;
  windrow_database* db;
  windrow_keyspace* keyspace;
  check(windrow_open(state->folder, state->options, &db, &error), error);
  check(windrow_keyspace_open(db, "main", &keyspace, &error), error);
  windrow_keyspace_free(keyspace);
  check(windrow_close(db, &error), error);
}

static void walk(struct state* state) {
  const windrow_range everything = {{NULL, 0}, {NULL, 0}};
  windrow_error* error;
  windrow_cursor* cursor;
  windrow_bytes value;
  bool valid;
  check(windrow_cursor_open(state->keyspace, NULL, everything, &cursor, &error), error);
  check(windrow_cursor_seek_to_first(cursor, &valid, &error), error);
  check(windrow_cursor_next(cursor, &valid, &error), error);
  check(windrow_cursor_value(cursor, &value, &error), error);
  if (!valid || value.length != 10000) exit(1);
  windrow_cursor_free(cursor);
}

static void fail(struct state* state) {
  windrow_error* error;
  int code = windrow_put(state->keyspace, WINDROW_BYTES("", 0), WINDROW_BYTES("", 0), 0, &error);
  if (code != WINDROW_INVALID_ARGUMENT || windrow_error_message(error)[0] == 0) exit(1);
  windrow_error_free(error);
}

/* What can be used many times. */
struct use {
  const char* name;
  long times;
  /* Less than what one would leave if it left anything, in bytes. */
  long size;
  void (*once)(struct state*);
};

/* What the first half leaves may be kept for the next ones; the second half may leave nothing but the slack, whatever the slack
   if there are many. */
static void repeat(struct use use, struct state* state) {
  const char* wanted = getenv("WINDROW_TIMES");
  long half = (wanted != NULL ? atol(wanted) : use.times) / 2;
  long resident[2], allocated[2];
  /* What the first ones allocate may stay. */
  for (long time = 0; time < half / 2 && time < 10000; time++) use.once(state);
  for (int part = 0; part < 2; part++) {
    resident[part] = -resident_bytes();
    allocated[part] = -allocated_bytes();
    for (long time = 0; time < half; time++) use.once(state);
    resident[part] += resident_bytes();
    allocated[part] += allocated_bytes();
  }
  printf("%s: %ld times; the first half left %ld resident and %ld allocated bytes, the second %ld and %ld\n", use.name,
         2 * half, resident[0], allocated[0], resident[1], allocated[1]);
  fflush(stdout);
  if (half < 1 || resident[1] > RESIDENT_SLACK_BYTES + use.size * half) exit(1);
  if (allocated[1] > ALLOCATED_SLACK_BYTES) exit(1);
}

int main(int count, char** arguments) {
  if (count != 2) return 2;
  char folder[1024];
  static uint8_t large[10000];
  windrow_error* error;
  windrow_database* db;
  windrow_options* options = windrow_options_new();
  windrow_options_set_memory_budget(options, 16 << 20);
  struct state state = {folder, options, NULL};
  snprintf(folder, sizeof folder, "%s/kept", arguments[1]);
  check(windrow_open(folder, options, &db, &error), error);
  check(windrow_keyspace_open(db, "main", &state.keyspace, &error), error);
  check(windrow_put(state.keyspace, WINDROW_BYTES("a", 1), WINDROW_BYTES("1", 1), 0, &error), error);
  check(windrow_put(state.keyspace, WINDROW_BYTES("b", 1), WINDROW_BYTES(large, sizeof large), 0, &error), error);
  check(windrow_flush(db, &error), error);
  repeat((struct use){"errors", 100000, 8, fail}, &state);
  repeat((struct use){"cursors", 100000, 16, walk}, &state);
  windrow_keyspace_free(state.keyspace);
  check(windrow_close(db, &error), error);

  snprintf(folder, sizeof folder, "%s/opened", arguments[1]);
  repeat((struct use){"opens", 2000, 256, open_and_close}, &state);
  windrow_options_free(options);
  return 0;
}
