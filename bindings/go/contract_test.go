package windrow_test

// The contract suite of all bindings: see bindings/contract/README.md.

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"reflect"
	"testing"
	"time"

	windrow "github.com/windrow-db/windrow/bindings/go"
)

// octets are bytes of the suite. Null is nil, and no bytes are not.
type octets []byte

func (octets *octets) UnmarshalJSON(text []byte) error {
	var repeated struct {
		Byte  string
		Times int
	}
	var digits *string
	if text[0] == '{' {
		if err := json.Unmarshal(text, &repeated); err != nil {
			return err
		}
		one, err := hex.DecodeString(repeated.Byte)
		*octets = bytes.Repeat(one, repeated.Times)
		return err
	}
	if err := json.Unmarshal(text, &digits); err != nil || digits == nil {
		return err
	}
	found, err := hex.DecodeString(*digits)
	*octets = append([]byte{}, found...)
	return err
}

// write is a write of a step, of a batch, or of a change.
type write struct {
	Do, Keyspace        string
	Key, Value, Operand octets
	Start, End          octets
	// In milliseconds; 0 for a value that stays.
	TTL int64
}

type step struct {
	write
	Isolation, Name       string
	ForUpdate             bool `json:"for_update"`
	Keys, Values          []octets
	Expected              octets
	Before, After         octets
	Reverse, Exists, Done bool
	Entries               [][2]octets
	Writes                []write
	Names                 []string
	Changes               [][]write
	Snapshot, Transaction int
	Savepoint, Count      int
	Error                 string
}

var suite struct {
	MergeOperators map[string]string `json:"merge_operators"`
	LockTimeout    int64             `json:"lock_timeout"`
	Histories      []struct {
		Name  string
		Steps []json.RawMessage
	}
}

var kindsOfTheSuite = map[string]windrow.Kind{
	"InvalidArgument": windrow.ErrInvalidArgument, "NotFound": windrow.ErrNotFound,
	"AlreadyExists": windrow.ErrAlreadyExists, "Locked": windrow.ErrLocked, "NoSpace": windrow.ErrNoSpace,
	"Io": windrow.ErrIO, "Corruption": windrow.ErrCorruption, "Unsupported": windrow.ErrUnsupported,
	"Poisoned": windrow.ErrPoisoned, "Closed": windrow.ErrClosed, "ReadOnly": windrow.ErrReadOnly,
	"Conflict": windrow.ErrConflict, "Deadlock": windrow.ErrDeadlock, "TimedOut": windrow.ErrTimedOut,
	"Merge": windrow.ErrMerge,
}

// follower is a consumer, with the numbers of the changes that it has read last.
type follower struct {
	*windrow.Consumer
	read []uint64
}

// player runs the steps of a history.
type player struct {
	t            *testing.T
	path         string
	began        time.Time
	db           *windrow.DB
	keyspaces    map[string]*windrow.Keyspace
	snapshots    map[int]*windrow.Snapshot
	transactions map[int]*windrow.Transaction
	savepoints   map[int]windrow.Savepoint
	followers    map[string]*follower
}

func (player *player) open() (err error) {
	operators := map[string]windrow.MergeOperator{}
	for keyspace, name := range suite.MergeOperators {
		operators[keyspace] = windrow.MergeOperator{Name: name}
	}
	timeout := time.Duration(suite.LockTimeout) * time.Millisecond
	player.db, err = windrow.Open(player.path, &windrow.Options{MergeOperators: operators, LockTimeout: timeout})
	if err != nil {
		return err
	}
	player.keyspaces = map[string]*windrow.Keyspace{}
	player.snapshots = map[int]*windrow.Snapshot{}
	player.transactions = map[int]*windrow.Transaction{}
	player.savepoints = map[int]windrow.Savepoint{}
	player.followers = map[string]*follower{}
	for _, name := range []string{"main", "lists"} {
		if player.keyspaces[name], err = player.db.Keyspace(name); err != nil {
			return err
		}
	}
	return nil
}

func (player *player) view(step *step) *windrow.View {
	keyspace := player.keyspaces[step.Keyspace]
	if step.Snapshot != 0 {
		return keyspace.At(player.snapshots[step.Snapshot])
	}
	return &keyspace.View
}

// same compares what was found with the answer.
func (player *player) same(found []byte, err error, expected octets) error {
	if errors.Is(err, windrow.ErrKeyNotFound) {
		found, err = nil, nil
	}
	if err == nil && (!bytes.Equal(found, expected) || (found == nil) != (expected == nil)) {
		player.t.Errorf("found %x, not %x", found, []byte(expected))
	}
	return err
}

func (player *player) scan(step *step) error {
	keys := windrow.Range{Start: step.Start, End: step.End}
	entries := player.view(step).Entries(keys)
	transaction, keyspace := player.transactions[step.Transaction], player.keyspaces[step.Keyspace]
	switch {
	case transaction != nil && step.Reverse:
		entries = transaction.Backward(keyspace, keys)
	case transaction != nil:
		entries = transaction.Entries(keyspace, keys)
	case step.Reverse:
		entries = player.view(step).Backward(keys)
	}
	rest := step.Entries
	for entry, err := range entries {
		if err != nil {
			return err
		}
		if len(rest) == 0 || !bytes.Equal(entry.Key, rest[0][0]) || !bytes.Equal(entry.Value, rest[0][1]) {
			player.t.Fatalf("found %x, and %d more were expected", entry.Key, len(rest))
		}
		rest = rest[1:]
	}
	if len(rest) > 0 {
		player.t.Errorf("%d more were expected", len(rest))
	}
	return nil
}

func (player *player) neighbors(step *step) error {
	cursor, err := player.view(step).Cursor(windrow.All)
	if err != nil {
		return err
	}
	defer cursor.Close()
	cursor.SeekBefore(step.Key)
	if err := player.same(cursor.Key(), cursor.Err(), step.Before); err != nil {
		return err
	}
	cursor.Seek(step.Key)
	return player.same(cursor.Key(), cursor.Err(), step.After)
}

func (player *player) get(step *step) error {
	transaction, keyspace := player.transactions[step.Transaction], player.keyspaces[step.Keyspace]
	get := player.view(step).Get
	switch {
	case transaction != nil && step.ForUpdate:
		get = func(key []byte) ([]byte, error) { return transaction.GetForUpdate(keyspace, key) }
	case transaction != nil:
		get = func(key []byte) ([]byte, error) { return transaction.Get(keyspace, key) }
	}
	found, err := get(step.Key)
	return player.same(found, err, step.Value)
}

func (player *player) multiGet(step *step) error {
	keys := make([][]byte, len(step.Keys))
	for i, key := range step.Keys {
		keys[i] = key
	}
	found, err := player.view(step).MultiGet(keys...)
	if err == nil && len(found) != len(step.Values) {
		player.t.Errorf("found %d values", len(found))
	}
	for i, value := range found {
		err = player.same(value, err, step.Values[i])
	}
	return err
}

// timeToLive is that of what expires then, in milliseconds. It has whole hours, and no history takes as long.
func (player *player) timeToLive(expiry time.Time) int64 {
	if expiry.IsZero() {
		return 0
	}
	return expiry.Sub(player.began).Round(time.Hour).Milliseconds()
}

func (player *player) expiresAt(step *step) error {
	expiry, err := player.view(step).ExpiresAt(step.Key)
	exists := !errors.Is(err, windrow.ErrKeyNotFound)
	if !exists {
		err = nil
	}
	if found := player.timeToLive(expiry); err == nil && (exists != step.Exists || found != step.TTL) {
		player.t.Errorf("found %v, and a time to live of %d ms", exists, found)
	}
	return err
}

// put makes the write of a step.
func (player *player) put(step *step) error {
	keyspace, ttl := player.keyspaces[step.Keyspace], time.Duration(step.TTL)*time.Millisecond
	transaction := player.transactions[step.Transaction]
	switch {
	case transaction != nil && ttl != 0:
		return transaction.PutWithTTL(keyspace, step.Key, step.Value, ttl)
	case transaction != nil:
		return transaction.Put(keyspace, step.Key, step.Value)
	case ttl != 0:
		return keyspace.PutWithTTL(step.Key, step.Value, ttl)
	}
	return keyspace.Put(step.Key, step.Value)
}

func (player *player) batch(writes []write) error {
	var batch windrow.Batch
	for _, write := range writes {
		keyspace, ttl := player.keyspaces[write.Keyspace], time.Duration(write.TTL)*time.Millisecond
		switch {
		case write.Do == "put" && ttl != 0:
			batch.PutWithTTL(keyspace, write.Key, write.Value, ttl)
		case write.Do == "put":
			batch.Put(keyspace, write.Key, write.Value)
		case write.Do == "delete":
			batch.Delete(keyspace, write.Key)
		case write.Do == "merge":
			batch.Merge(keyspace, write.Key, write.Operand)
		case write.Do == "delete_range":
			batch.DeleteRange(keyspace, windrow.Range{Start: write.Start, End: write.End})
		default:
			player.t.Fatalf("a batch has no %q", write.Do)
		}
	}
	return player.db.Write(&batch)
}

// done compares whether a call has written.
func (player *player) done(done bool, err error, step *step) error {
	if err == nil && done != step.Done {
		player.t.Errorf("it has written: %v", done)
	}
	return err
}

// names compares names, in their order.
func (player *player) names(found []string, err error, step *step) error {
	if err == nil && !reflect.DeepEqual(append([]string{}, found...), step.Names) {
		player.t.Errorf("found %q", found)
	}
	return err
}

// changed is a write of a change as the suite has it.
func (player *player) changed(found windrow.Write) write {
	changed := write{Keyspace: found.Keyspace, TTL: player.timeToLive(found.ExpiresAt)}
	switch found.Kind {
	case windrow.WritePut:
		changed.Do, changed.Key, changed.Value = "put", found.Key, found.Value
	case windrow.WriteDelete:
		changed.Do, changed.Key = "delete", found.Key
	case windrow.WriteMerge:
		changed.Do, changed.Key, changed.Operand = "merge", found.Key, found.Value
	case windrow.WriteDeleteRange:
		changed.Do, changed.Start, changed.End = "delete_range", found.Key, found.Value
	}
	return changed
}

func (player *player) changes(step *step) error {
	follower := player.followers[step.Name]
	changes, err := follower.Changes()
	if err != nil {
		return err
	}
	defer changes.Close()
	follower.read = nil
	found := [][]write{}
	for change, err := range changes.Present() {
		if err != nil {
			return err
		}
		follower.read = append(follower.read, change.Sequence)
		var writes []write
		for _, one := range change.Writes {
			writes = append(writes, player.changed(one))
		}
		if change.Kind != windrow.BatchCommitted || change.Sequence+1-change.FirstSequence != uint64(len(writes)) {
			player.t.Errorf("found the change %v", change)
		}
		found = append(found, writes)
	}
	if !reflect.DeepEqual(found, step.Changes) {
		player.t.Errorf("found %v", found)
	}
	return nil
}

func (player *player) acknowledge(step *step) error {
	follower := player.followers[step.Name]
	sequence := follower.read[step.Count-1]
	if err := follower.Acknowledge(sequence); err != nil {
		return err
	}
	if found, err := follower.Acknowledged(); err != nil || found != sequence {
		player.t.Errorf("the place is %d after %d: %v", found, sequence, err)
	}
	return nil
}

func (player *player) begin(step *step) (err error) {
	begin := func() (*windrow.Transaction, error) { return player.db.Begin(windrow.Serializable) }
	switch step.Isolation {
	case "snapshot":
		begin = func() (*windrow.Transaction, error) { return player.db.Begin(windrow.SnapshotIsolation) }
	case "locking":
		begin = func() (*windrow.Transaction, error) { return player.db.BeginLocking(context.Background()) }
	}
	player.transactions[step.Transaction], err = begin()
	return err
}

func (player *player) run(step *step) (err error) {
	keyspace, keys := player.keyspaces[step.Keyspace], windrow.Range{Start: step.Start, End: step.End}
	transaction := player.transactions[step.Transaction]
	switch step.Do {
	case "put":
		return player.put(step)
	case "delete":
		if transaction != nil {
			return transaction.Delete(keyspace, step.Key)
		}
		return keyspace.Delete(step.Key)
	case "merge":
		if transaction != nil {
			return transaction.Merge(keyspace, step.Key, step.Operand)
		}
		return keyspace.Merge(step.Key, step.Operand)
	case "delete_range":
		if transaction != nil {
			return transaction.DeleteRange(keyspace, keys)
		}
		return keyspace.DeleteRange(keys)
	case "put_if_absent":
		done, err := keyspace.PutIfAbsent(step.Key, step.Value)
		return player.done(done, err, step)
	case "compare_and_swap":
		done, err := keyspace.CompareAndSwap(step.Key, step.Expected, step.Value)
		return player.done(done, err, step)
	case "batch":
		return player.batch(step.Writes)
	case "get":
		return player.get(step)
	case "multi_get":
		return player.multiGet(step)
	case "expires_at":
		return player.expiresAt(step)
	case "scan":
		return player.scan(step)
	case "neighbors":
		return player.neighbors(step)
	case "snapshot":
		player.snapshots[step.Snapshot], err = player.db.Snapshot()
		return err
	case "release":
		return player.snapshots[step.Snapshot].Close()
	case "begin":
		return player.begin(step)
	case "commit":
		return transaction.Commit()
	case "prepare":
		return transaction.Prepare(step.Name)
	case "prepared_names":
		names, err := player.db.Prepared()
		return player.names(names, err, step)
	case "commit_prepared":
		return player.db.CommitPrepared(step.Name)
	case "roll_back_prepared":
		return player.db.RollbackPrepared(step.Name)
	case "consumer":
		consumer, err := player.db.Consumer(step.Name)
		player.followers[step.Name] = &follower{consumer, nil}
		return err
	case "consumer_names":
		consumers, err := player.db.Consumers()
		var names []string
		for _, consumer := range consumers {
			names = append(names, consumer.Name)
		}
		return player.names(names, err, step)
	case "changes":
		return player.changes(step)
	case "acknowledge":
		return player.acknowledge(step)
	case "remove_consumer":
		return player.db.RemoveConsumer(step.Name)
	case "roll_back":
		transaction.Rollback()
		return nil
	case "savepoint":
		player.savepoints[step.Savepoint], err = transaction.Savepoint()
		return err
	case "roll_back_to":
		return transaction.RollbackTo(player.savepoints[step.Savepoint])
	case "flush":
		return player.db.Flush(context.Background())
	case "compact":
		return keyspace.Compact(context.Background(), windrow.All)
	case "close":
		return player.db.Close()
	case "reopen":
		if err := player.db.Close(); err != nil {
			return err
		}
		return player.open()
	case "open_again":
		_, err = windrow.Open(player.path, nil)
		return err
	}
	player.t.Fatalf("the suite has the unknown step %q", step.Do)
	return nil
}

func TestTheAnswersAreThoseOfTheSuite(t *testing.T) {
	text, err := os.ReadFile("../contract/suite.json")
	check(t, err)
	check(t, json.Unmarshal(text, &suite))
	if len(suite.Histories) == 0 {
		t.Fatal("the suite has no histories")
	}
	for _, history := range suite.Histories {
		t.Run(history.Name, func(t *testing.T) {
			player := &player{t: t, path: t.TempDir(), began: time.Now()}
			check(t, player.open())
			for _, text := range history.Steps {
				var step step
				check(t, json.Unmarshal(text, &step))
				if err := player.run(&step); step.Error == "" && err != nil || step.Error != "" && !errors.Is(err, kindsOfTheSuite[step.Error]) {
					t.Fatalf("the error is %v in %.1000s", err, text)
				}
				if t.Failed() {
					t.Fatalf("in %.1000s", text)
				}
			}
			check(t, player.db.Close())
		})
	}
}
