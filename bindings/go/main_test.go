package windrow_test

import (
	"errors"
	"testing"

	windrow "github.com/windrow-db/windrow/bindings/go"
)

// opened opens a database in a folder of the test, which closes it, and the keyspace main.
func opened(t testing.TB, options *windrow.Options) (*windrow.DB, *windrow.Keyspace) {
	t.Helper()
	db, err := windrow.Open(t.TempDir(), options)
	check(t, err)
	t.Cleanup(func() { check(t, db.Close()) })
	return db, keyspace(t, db, "main")
}

// merging are options with a merge operator for one keyspace.
func merging(keyspace string, operator windrow.MergeOperator) *windrow.Options {
	return &windrow.Options{MergeOperators: map[string]windrow.MergeOperator{keyspace: operator}}
}

func keyspace(t testing.TB, db *windrow.DB, name string) *windrow.Keyspace {
	t.Helper()
	keyspace, err := db.Keyspace(name)
	check(t, err)
	return keyspace
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func is(t testing.TB, err, expected error) {
	t.Helper()
	if !errors.Is(err, expected) {
		t.Fatalf("the error is %v, not %v", err, expected)
	}
}

func equal[T comparable](t testing.TB, found, expected T) {
	t.Helper()
	if found != expected {
		t.Fatalf("found %v, not %v", found, expected)
	}
}

// put sets values: pairs of key and value.
func put(t testing.TB, keyspace *windrow.Keyspace, pairs ...string) {
	t.Helper()
	for i := 0; i < len(pairs); i += 2 {
		check(t, keyspace.Put([]byte(pairs[i]), []byte(pairs[i+1])))
	}
}

type getter interface {
	Get(key []byte) ([]byte, error)
}

// get is the value of a key, or "missing".
func get(t testing.TB, from getter, key string) string {
	t.Helper()
	value, err := from.Get([]byte(key))
	if errors.Is(err, windrow.ErrKeyNotFound) {
		return "missing"
	}
	check(t, err)
	return string(value)
}

// text has the entries of an iteration as "key=value ".
func text(t testing.TB, entries func(func(windrow.Entry, error) bool)) string {
	t.Helper()
	found := ""
	for entry, err := range entries {
		check(t, err)
		found += string(entry.Key) + "=" + string(entry.Value) + " "
	}
	return found
}
