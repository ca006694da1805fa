// Package raftstore stores the logs and the settings of github.com/hashicorp/raft in a Windrow database: a [Store] is a
// [raft.LogStore] and a [raft.StableStore].
//
// Each write is synced before it returns, and the logs of one call are written as one. Any number of goroutines may use a
// Store.
package raftstore

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/hashicorp/raft"
	windrow "github.com/windrow-db/windrow/bindings/go"
)

// ErrKeyNotFound says that a setting does not exist. Raft knows it by its text.
var ErrKeyNotFound = errors.New("not found")

// Store has the logs of one server, and its settings.
type Store struct {
	db *windrow.DB
	// Logs by their index, 8 bytes, big-endian.
	logs *windrow.Keyspace
	// Settings by their names.
	stable *windrow.Keyspace
}

var (
	_ raft.LogStore    = (*Store)(nil)
	_ raft.StableStore = (*Store)(nil)
)

// Open opens the store in the folder path, or creates it. Nil options are the defaults. Close it.
func Open(path string, options *windrow.Options) (*Store, error) {
	db, err := windrow.Open(path, options)
	if err != nil {
		return nil, err
	}
	logs, err := db.Keyspace("logs")
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	stable, err := db.Keyspace("stable")
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return &Store{db: db, logs: logs, stable: stable}, nil
}

// Close closes the database.
func (store *Store) Close() error {
	return store.db.Close()
}

// FirstIndex is the index of the first log; 0 if there is none.
func (store *Store) FirstIndex() (uint64, error) {
	return store.index((*windrow.Cursor).First)
}

// LastIndex is the index of the last log; 0 if there is none.
func (store *Store) LastIndex() (uint64, error) {
	return store.index((*windrow.Cursor).Last)
}

func (store *Store) index(move func(*windrow.Cursor) bool) (uint64, error) {
	cursor, err := store.logs.Cursor(windrow.All)
	if err != nil {
		return 0, err
	}
	defer cursor.Close()
	if !move(cursor) {
		return 0, cursor.Err()
	}
	if found := cursor.Key(); len(found) == 8 {
		return binary.BigEndian.Uint64(found), nil
	}
	return 0, fmt.Errorf("%x is no index of a log", cursor.Key())
}

// GetLog reads the log of an index, or returns [raft.ErrLogNotFound].
func (store *Store) GetLog(index uint64, log *raft.Log) error {
	value, err := store.logs.Get(key(index))
	if errors.Is(err, windrow.ErrKeyNotFound) {
		return raft.ErrLogNotFound
	}
	if err != nil {
		return err
	}
	return decode(value, index, log)
}

// StoreLog stores one log.
func (store *Store) StoreLog(log *raft.Log) error {
	return store.StoreLogs([]*raft.Log{log})
}

// StoreLogs stores logs: all of them or none. There may be gaps between their indexes.
func (store *Store) StoreLogs(logs []*raft.Log) error {
	var batch windrow.Batch
	var value []byte
	for _, log := range logs {
		var err error
		if value, err = encode(value[:0], log); err != nil {
			return err
		}
		batch.Put(store.logs, key(log.Index), value)
	}
	return store.db.Write(&batch, windrow.Sync)
}

// DeleteRange deletes the logs from the index first on up to last, by one small write.
func (store *Store) DeleteRange(first, last uint64) error {
	if first > last {
		return nil
	}
	keys := windrow.Range{Start: key(first)}
	if last < math.MaxUint64 {
		keys.End = key(last + 1)
	}
	return store.logs.DeleteRange(keys, windrow.Sync)
}

// Set sets a setting. Its name has at least one byte.
func (store *Store) Set(name, value []byte) error {
	return store.stable.Put(name, value, windrow.Sync)
}

// Get returns a setting, or [ErrKeyNotFound].
func (store *Store) Get(name []byte) ([]byte, error) {
	value, err := store.stable.Get(name)
	if errors.Is(err, windrow.ErrKeyNotFound) {
		return nil, ErrKeyNotFound
	}
	return value, err
}

// SetUint64 sets a setting to a number.
func (store *Store) SetUint64(name []byte, number uint64) error {
	return store.Set(name, binary.BigEndian.AppendUint64(nil, number))
}

// GetUint64 returns the number of a setting, or [ErrKeyNotFound].
func (store *Store) GetUint64(name []byte) (uint64, error) {
	value, err := store.Get(name)
	if err != nil {
		return 0, err
	}
	if len(value) != 8 {
		return 0, fmt.Errorf("raftstore: the setting %q is no number", name)
	}
	return binary.BigEndian.Uint64(value), nil
}

func key(index uint64) []byte {
	return binary.BigEndian.AppendUint64(make([]byte, 0, 8), index)
}

// The first byte of each stored log. A log is then its term and type, the time and the extensions with their lengths, and
// its data.
const format = 1

func encode(to []byte, log *raft.Log) ([]byte, error) {
	to = binary.AppendUvarint(append(to, format), log.Term)
	to = append(to, byte(log.Type))
	var appended []byte
	if !log.AppendedAt.IsZero() {
		var err error
		if appended, err = log.AppendedAt.MarshalBinary(); err != nil {
			return nil, err
		}
	}
	to = append(binary.AppendUvarint(to, uint64(len(appended))), appended...)
	to = append(binary.AppendUvarint(to, uint64(len(log.Extensions))), log.Extensions...)
	return append(to, log.Data...), nil
}

// decode reads a stored log. Its data and extensions are parts of value; what is empty is nil.
func decode(value []byte, index uint64, log *raft.Log) error {
	damaged := fmt.Errorf("raftstore: the log %d cannot be read", index)
	number := func() (uint64, bool) {
		number, length := binary.Uvarint(value)
		if length <= 0 {
			return 0, false
		}
		value = value[length:]
		return number, true
	}
	part := func() ([]byte, bool) {
		length, ok := number()
		if !ok || length > uint64(len(value)) {
			return nil, false
		}
		if length == 0 {
			return nil, true
		}
		part := value[:length:length]
		value = value[length:]
		return part, true
	}
	if len(value) == 0 || value[0] != format {
		return damaged
	}
	value = value[1:]
	term, ok := number()
	if !ok || len(value) == 0 {
		return damaged
	}
	kind := raft.LogType(value[0])
	value = value[1:]
	appended, ok := part()
	if !ok {
		return damaged
	}
	var appendedAt time.Time
	if appended != nil {
		if err := appendedAt.UnmarshalBinary(appended); err != nil {
			return damaged
		}
	}
	extensions, ok := part()
	if !ok {
		return damaged
	}
	if len(value) == 0 {
		value = nil
	}
	*log = raft.Log{Index: index, Term: term, Type: kind, Data: value, Extensions: extensions, AppendedAt: appendedAt}
	return nil
}
