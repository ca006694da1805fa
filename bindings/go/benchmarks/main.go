// Small entries in Windrow, goleveldb and bbolt, in turns: batches, single puts, gets and scans. Prints the median time of
// each library for one entry, and how many times as long as Windrow it takes.
//
//	go run . [-entries 100000] [-rounds 5] FOLDER
package main

import (
	"encoding/binary"
	"flag"
	"fmt"
	"log"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"time"

	"github.com/syndtr/goleveldb/leveldb"
	"github.com/syndtr/goleveldb/leveldb/opt"
	windrow "github.com/windrow-db/windrow/bindings/go"
	"go.etcd.io/bbolt"
)

// A store under test. No write is synced; bbolt would be with its defaults.
type store interface {
	name() string
	// load writes entries as one.
	load(keys [][]byte, value []byte) error
	put(key, value []byte) error
	get(key []byte) ([]byte, error)
	// scan counts all entries, forwards.
	scan() (int, error)
}

type ofWindrow struct {
	db       *windrow.DB
	keyspace *windrow.Keyspace
}

func (ofWindrow) name() string { return "windrow" }

func (store ofWindrow) load(keys [][]byte, value []byte) error {
	var batch windrow.Batch
	for _, key := range keys {
		batch.Put(store.keyspace, key, value)
	}
	return store.db.Write(&batch)
}

func (store ofWindrow) put(key, value []byte) error { return store.keyspace.Put(key, value) }

func (store ofWindrow) get(key []byte) ([]byte, error) { return store.keyspace.Get(key) }

func (store ofWindrow) scan() (count int, err error) {
	for _, err := range store.keyspace.Entries(windrow.All) {
		if err != nil {
			return 0, err
		}
		count++
	}
	return count, nil
}

type ofLevelDB struct{ db *leveldb.DB }

func (ofLevelDB) name() string { return "goleveldb" }

func (store ofLevelDB) load(keys [][]byte, value []byte) error {
	var batch leveldb.Batch
	for _, key := range keys {
		batch.Put(key, value)
	}
	return store.db.Write(&batch, nil)
}

func (store ofLevelDB) put(key, value []byte) error { return store.db.Put(key, value, nil) }

func (store ofLevelDB) get(key []byte) ([]byte, error) { return store.db.Get(key, nil) }

func (store ofLevelDB) scan() (count int, err error) {
	entries := store.db.NewIterator(nil, nil)
	defer entries.Release()
	for entries.Next() {
		count += min(1, len(entries.Key()), len(entries.Value()))
	}
	return count, entries.Error()
}

type ofBolt struct{ db *bbolt.DB }

var bucket = []byte("main")

func (ofBolt) name() string { return "bbolt" }

func (store ofBolt) load(keys [][]byte, value []byte) error {
	return store.db.Update(func(transaction *bbolt.Tx) error {
		for _, key := range keys {
			if err := transaction.Bucket(bucket).Put(key, value); err != nil {
				return err
			}
		}
		return nil
	})
}

func (store ofBolt) put(key, value []byte) error { return store.load([][]byte{key}, value) }

func (store ofBolt) get(key []byte) (value []byte, err error) {
	err = store.db.View(func(transaction *bbolt.Tx) error {
		value = append(value, transaction.Bucket(bucket).Get(key)...)
		return nil
	})
	return value, err
}

func (store ofBolt) scan() (count int, err error) {
	err = store.db.View(func(transaction *bbolt.Tx) error {
		return transaction.Bucket(bucket).ForEach(func(key, value []byte) error {
			count += min(1, len(key), len(value))
			return nil
		})
	})
	return count, err
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func main() {
	entries := flag.Int("entries", 100_000, "how many entries")
	rounds := flag.Int("rounds", 5, "how often each is measured")
	flag.Parse()
	if flag.NArg() != 1 || *entries < 1 || *rounds < 1 {
		log.Fatal("usage: benchmarks [-entries N] [-rounds N] FOLDER")
	}
	folder := flag.Arg(0)
	db, err := windrow.Open(filepath.Join(folder, "windrow"), &windrow.Options{ErrorIfExists: true})
	check(err)
	defer db.Close()
	keyspace, err := db.Keyspace("main")
	check(err)
	level, err := leveldb.OpenFile(filepath.Join(folder, "goleveldb"), &opt.Options{
		Compression: opt.NoCompression, WriteBuffer: 64 << 20, BlockCacheCapacity: 64 << 20,
	})
	check(err)
	defer level.Close()
	bolt, err := bbolt.Open(filepath.Join(folder, "bbolt"), 0o600, nil)
	check(err)
	defer bolt.Close()
	bolt.NoSync = true
	check(bolt.Update(func(transaction *bbolt.Tx) error {
		_, err := transaction.CreateBucketIfNotExists(bucket)
		return err
	}))

	random := rand.New(rand.NewPCG(1, 1))
	keys := make([][]byte, *entries)
	for i := range keys {
		keys[i] = binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, random.Uint64()), uint64(i))
	}
	value := make([]byte, 100)
	single := keys[:min(len(keys), 2000)]
	measures := []struct {
		name  string
		count int
		run   func(store) error
	}{
		{"batches of 1000", *entries, func(store store) error {
			for chunk := range slices.Chunk(keys, 1000) {
				if err := store.load(chunk, value); err != nil {
					return err
				}
			}
			return nil
		}},
		{"put", len(single), func(store store) error {
			for _, key := range single {
				if err := store.put(key, value); err != nil {
					return err
				}
			}
			return nil
		}},
		{"get", *entries, func(store store) error {
			for _, key := range keys {
				if found, err := store.get(key); err != nil || len(found) != len(value) {
					return fmt.Errorf("%x has %d bytes: %w", key, len(found), err)
				}
			}
			return nil
		}},
		{"scan", *entries, func(store store) error {
			if count, err := store.scan(); err != nil || count != *entries {
				return fmt.Errorf("the scan found %d: %w", count, err)
			}
			return nil
		}},
	}
	stores := []store{ofWindrow{db, keyspace}, ofLevelDB{level}, ofBolt{bolt}}
	fmt.Printf("%-16s %-10s %12s %8s\n", "", "", "ns an entry", "times")
	for _, measure := range measures {
		times := make([][]float64, len(stores))
		for range *rounds {
			for i, store := range stores {
				start := time.Now()
				check(measure.run(store))
				times[i] = append(times[i], float64(time.Since(start).Nanoseconds())/float64(measure.count))
			}
		}
		for i := range stores {
			slices.Sort(times[i])
			median := times[i][*rounds/2]
			fmt.Printf("%-16s %-10s %12.0f %8.2f\n", measure.name, stores[i].name(), median, median/times[0][*rounds/2])
		}
	}
}
