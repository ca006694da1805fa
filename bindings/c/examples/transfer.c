/* A transaction that is tried again after a conflict: it moves one coin from one account to the other.

   cc transfer.c $(pkg-config --cflags --libs windrow) && ./a.out FOLDER */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <windrow.h>

static void check(int code, windrow_error* error) {
  if (code == WINDROW_OK) return;
  fprintf(stderr, "error %d: %s\n", code, windrow_error_message(error));
  exit(1);
}

static windrow_bytes text(const char* text) { return WINDROW_BYTES(text, strlen(text)); }

/* The coins of an account as the transaction sees it; 100 for a new one. */
static int64_t coins(windrow_transaction* transaction, windrow_keyspace* accounts, const char* name) {
  windrow_error* error;
  windrow_value* value;
  int64_t coins = 100;
  check(windrow_transaction_get(transaction, accounts, text(name), WINDROW_READ_PLAIN, &value, &error),
        error);
  windrow_bytes bytes = windrow_value_bytes(value);
  if (bytes.length == sizeof coins) memcpy(&coins, bytes.data, sizeof coins);
  windrow_value_free(value);
  return coins;
}

static int transfer(windrow_database* db, windrow_keyspace* accounts, const char* from, const char* to) {
  for (;;) {
    windrow_error* error;
    windrow_transaction* transaction;
    check(windrow_transaction_begin(db, WINDROW_ISOLATION_SERIALIZABLE, &transaction, &error), error);
    int64_t left = coins(transaction, accounts, from) - 1;
    int64_t more = coins(transaction, accounts, to) + 1;
    if (left < 0) {
      windrow_transaction_roll_back(transaction);
      return 0;
    }
    check(windrow_transaction_put(transaction, accounts, text(from),
                                  WINDROW_BYTES(&left, sizeof left), &error), error);
    check(windrow_transaction_put(transaction, accounts, text(to),
                                  WINDROW_BYTES(&more, sizeof more), &error), error);
    int code = windrow_transaction_commit(transaction, WINDROW_DURABILITY_DEFAULT, &error);
    if (code != WINDROW_CONFLICT) {
      check(code, error);
      printf("%s has %lld, %s has %lld\n", from, (long long)left, to, (long long)more);
      return 1;
    }
    windrow_error_free(error);
  }
}

int main(int count, char** arguments) {
  if (count != 2) {
    fprintf(stderr, "usage: transfer FOLDER\n");
    return 2;
  }
  windrow_error* error;
  windrow_database* db;
  windrow_keyspace* accounts;
  check(windrow_open(arguments[1], NULL, &db, &error), error);
  check(windrow_keyspace_open(db, "accounts", &accounts, &error), error);
  int moved = transfer(db, accounts, "ada", "grace");
  windrow_keyspace_free(accounts);
  check(windrow_close(db, &error), error);
  return moved ? 0 : 1;
}
