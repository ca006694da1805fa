/* The first steps: open, write, read, scan, close.

   cc planets.c $(pkg-config --cflags --libs windrow) && ./a.out FOLDER */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <windrow.h>

/* Ends the program if a call has failed. */
static void check(int code, windrow_error* error) {
  if (code == WINDROW_OK) return;
  fprintf(stderr, "error %d: %s\n", code, windrow_error_message(error));
  exit(1);
}

static windrow_bytes text(const char* text) { return WINDROW_BYTES(text, strlen(text)); }

int main(int count, char** arguments) {
  if (count != 2) {
    fprintf(stderr, "usage: planets FOLDER\n");
    return 2;
  }
  windrow_error* error;
  windrow_database* db;
  check(windrow_open(arguments[1], NULL, &db, &error), error);
  windrow_keyspace* planets;
  check(windrow_keyspace_open(db, "planets", &planets, &error), error);

  check(windrow_put(planets, text("earth"), text("one moon"), WINDROW_DURABILITY_DEFAULT, &error),
        error);
  check(windrow_put(planets, text("mars"), text("two moons"), WINDROW_DURABILITY_SYNC, &error),
        error);

  /* The value stays in place: no copy is made. */
  windrow_value* value;
  check(windrow_get(planets, NULL, text("mars"), &value, &error), error);
  if (value != NULL) {
    windrow_bytes bytes = windrow_value_bytes(value);
    printf("mars has %.*s\n", (int)bytes.length, (const char*)bytes.data);
  }
  windrow_value_free(value);

  windrow_cursor* cursor;
  windrow_range everything = {0};
  check(windrow_cursor_open(planets, NULL, everything, &cursor, &error), error);
  bool valid;
  check(windrow_cursor_seek_to_first(cursor, &valid, &error), error);
  while (valid) {
    windrow_bytes key = windrow_cursor_key(cursor), moons;
    check(windrow_cursor_value(cursor, &moons, &error), error);
    printf("%.*s: %.*s\n", (int)key.length, (const char*)key.data, (int)moons.length,
           (const char*)moons.data);
    check(windrow_cursor_next(cursor, &valid, &error), error);
  }
  windrow_cursor_free(cursor);

  windrow_keyspace_free(planets);
  check(windrow_close(db, &error), error);
  return 0;
}
