// Planets and their moons: writes, reads, ranges, a batch and a snapshot.
//
//	go run ./examples/planets FOLDER
package main

import (
	"errors"
	"fmt"
	"log"
	"os"

	windrow "github.com/windrow-db/windrow/bindings/go"
)

func main() {
	if len(os.Args) != 2 {
		log.Fatal("usage: planets FOLDER")
	}
	if err := run(os.Args[1]); err != nil {
		log.Fatal(err)
	}
}

func run(folder string) (err error) {
	db, err := windrow.Open(folder, nil)
	if err != nil {
		return err
	}
	// The close makes the writes durable, so its error counts.
	defer func() { err = errors.Join(err, db.Close()) }()
	planets, err := db.Keyspace("planets")
	if err != nil {
		return err
	}
	var batch windrow.Batch
	for name, moons := range map[string]string{"earth": "one", "mars": "two", "mercury": "none", "venus": "none"} {
		batch.Put(planets, []byte(name), []byte(moons))
	}
	if err := db.Write(&batch, windrow.Sync); err != nil {
		return err
	}

	snapshot, err := db.Snapshot()
	if err != nil {
		return err
	}
	defer snapshot.Close()
	if err := planets.Delete([]byte("mars")); err != nil {
		return err
	}
	if _, err := planets.Get([]byte("mars")); !errors.Is(err, windrow.ErrKeyNotFound) {
		return fmt.Errorf("mars is still there: %w", err)
	}
	for entry, err := range planets.At(snapshot).Entries(windrow.Prefix([]byte("m"))) {
		if err != nil {
			return err
		}
		fmt.Printf("%s had moons: %s\n", entry.Key, entry.Value)
	}
	for entry, err := range planets.Backward(windrow.All) {
		if err != nil {
			return err
		}
		fmt.Printf("%s has moons: %s\n", entry.Key, entry.Value)
	}
	return nil
}
