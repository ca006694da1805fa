package windrow_test

// The contract suite of all bindings: see bindings/contract/README.md.

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"testing"

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

type step struct {
	Do, Keyspace, Isolation string
	Key, Value, Operand     octets
	Start, End              octets
	Before, After           octets
	Reverse                 bool
	Entries                 [][2]octets
	Writes                  []step
	Snapshot, Transaction   int
	Savepoint               int
	Error                   string
}

var suite struct {
	MergeOperators map[string]string `json:"merge_operators"`
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

// player runs the steps of a history.
type player struct {
	t            *testing.T
	path         string
	db           *windrow.DB
	keyspaces    map[string]*windrow.Keyspace
	snapshots    map[int]*windrow.Snapshot
	transactions map[int]*windrow.Transaction
	savepoints   map[int]windrow.Savepoint
}

func (player *player) open() (err error) {
	operators := map[string]windrow.MergeOperator{}
	for keyspace, name := range suite.MergeOperators {
		operators[keyspace] = windrow.MergeOperator{Name: name}
	}
	player.db, err = windrow.Open(player.path, &windrow.Options{MergeOperators: operators})
	if err != nil {
		return err
	}
	player.keyspaces = map[string]*windrow.Keyspace{}
	player.snapshots = map[int]*windrow.Snapshot{}
	player.transactions = map[int]*windrow.Transaction{}
	player.savepoints = map[int]windrow.Savepoint{}
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

func (player *player) run(step *step) (err error) {
	keyspace, keys := player.keyspaces[step.Keyspace], windrow.Range{Start: step.Start, End: step.End}
	transaction := player.transactions[step.Transaction]
	switch step.Do {
	case "put":
		if transaction != nil {
			return transaction.Put(keyspace, step.Key, step.Value)
		}
		return keyspace.Put(step.Key, step.Value)
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
	case "batch":
		var batch windrow.Batch
		for _, write := range step.Writes {
			keyspace := player.keyspaces[write.Keyspace]
			switch write.Do {
			case "put":
				batch.Put(keyspace, write.Key, write.Value)
			case "delete":
				batch.Delete(keyspace, write.Key)
			case "merge":
				batch.Merge(keyspace, write.Key, write.Operand)
			case "delete_range":
				batch.DeleteRange(keyspace, windrow.Range{Start: write.Start, End: write.End})
			default:
				player.t.Fatalf("a batch has no %q", write.Do)
			}
		}
		return player.db.Write(&batch)
	case "get":
		var found []byte
		if transaction != nil {
			found, err = transaction.Get(keyspace, step.Key)
		} else {
			found, err = player.view(step).Get(step.Key)
		}
		return player.same(found, err, step.Value)
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
		isolation := windrow.Serializable
		if step.Isolation == "snapshot" {
			isolation = windrow.SnapshotIsolation
		}
		player.transactions[step.Transaction], err = player.db.Begin(isolation)
		return err
	case "commit":
		return transaction.Commit()
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
			player := &player{t: t, path: t.TempDir()}
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
