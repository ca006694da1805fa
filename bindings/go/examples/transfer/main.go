// Goroutines move coins between two accounts. Transactions that come in each other's way are tried again.
//
//	go run ./examples/transfer FOLDER
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"strconv"
	"sync"

	windrow "github.com/windrow-db/windrow/bindings/go"
)

func main() {
	if len(os.Args) != 2 {
		log.Fatal("usage: transfer FOLDER")
	}
	if err := run(os.Args[1]); err != nil {
		log.Fatal(err)
	}
}

// coins are what the account has; a new one has 100.
func coins(transaction *windrow.Transaction, accounts *windrow.Keyspace, name string) (int, error) {
	value, err := transaction.GetForUpdate(accounts, []byte(name))
	if errors.Is(err, windrow.ErrKeyNotFound) {
		return 100, nil
	} else if err != nil {
		return 0, err
	}
	return strconv.Atoi(string(value))
}

func move(db *windrow.DB, accounts *windrow.Keyspace, from, to string) error {
	return db.Transact(context.Background(), func(transaction *windrow.Transaction) error {
		for name, change := range map[string]int{from: -1, to: +1} {
			count, err := coins(transaction, accounts, name)
			if err != nil {
				return err
			}
			text := strconv.AppendInt(nil, int64(count+change), 10)
			if err := transaction.Put(accounts, []byte(name), text); err != nil {
				return err
			}
		}
		return nil
	})
}

func run(folder string) (err error) {
	db, err := windrow.Open(folder, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	accounts, err := db.Keyspace("accounts")
	if err != nil {
		return err
	}
	failures := make(chan error, 40)
	var group sync.WaitGroup
	for range 4 {
		group.Add(1)
		go func() {
			defer group.Done()
			for range 10 {
				if err := move(db, accounts, "ada", "bob"); err != nil {
					failures <- err
				}
			}
		}()
	}
	group.Wait()
	close(failures)
	for err := range failures {
		return err
	}
	for entry, err := range accounts.Entries(windrow.All) {
		if err != nil {
			return err
		}
		fmt.Printf("%s has %s coins\n", entry.Key, entry.Value)
	}
	return nil
}
