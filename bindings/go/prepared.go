package windrow

/*
#include "calls.h"
*/
import "C"

import "encoding/json"

// Prepare makes the transaction durable under a name without its commit: the first phase of a commit in two phases. It ends
// the transaction with its cursors, also after an error. Then nothing is prepared, unless the database was poisoned: see
// [Transaction.Commit]. A prepared transaction survives crashes until [DB.CommitPrepared] or [DB.RollbackPrepared] ends it.
// Until then nobody else changes what it has read or written.
func (transaction *Transaction) Prepare(name string) error {
	return transaction.finish(func(pointer *C.windrow_transaction) error {
		err := withText(name, func(name *C.char, failed **C.windrow_error) {
			C.windrow_transaction_prepare(pointer, name, failed)
			pointer = nil
		})
		// A name with a null byte has not reached C.
		C.windrow_transaction_roll_back(pointer)
		return err
	})
}

// Prepared returns the names of all prepared transactions.
func (db *DB) Prepared() ([]string, error) {
	var text *C.char
	err := db.with(func(database *C.windrow_database, failed **C.windrow_error) {
		C.windrow_prepared_names_json(database, &text, failed)
	})
	if err != nil {
		return nil, err
	}
	var names []string
	err = json.Unmarshal(taken(text), &names)
	return names, err
}

// CommitPrepared commits the prepared transaction name. If nothing was written, it stays prepared.
func (db *DB) CommitPrepared(name string, durability ...Durability) error {
	return db.withText(name, func(database *C.windrow_database, name *C.char, failed **C.windrow_error) {
		C.windrow_commit_prepared(database, name, last(durability), failed)
	})
}

// RollbackPrepared discards the writes of the prepared transaction name.
func (db *DB) RollbackPrepared(name string, durability ...Durability) error {
	return db.withText(name, func(database *C.windrow_database, name *C.char, failed **C.windrow_error) {
		C.windrow_roll_back_prepared(database, name, last(durability), failed)
	})
}
