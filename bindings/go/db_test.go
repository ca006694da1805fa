package windrow_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	windrow "github.com/windrow-db/windrow/bindings/go"
)

func TestWritesAreThereAfterAReopen(t *testing.T) {
	path := t.TempDir()
	for round := range 3 {
		db, err := windrow.Open(path, nil)
		check(t, err)
		main := keyspace(t, db, "main")
		equal(t, get(t, main, "round"), []string{"missing", "0", "1"}[round])
		put(t, main, "round", string(rune('0'+round)), "empty", "")
		equal(t, get(t, main, "empty"), "")
		check(t, db.Close())
		check(t, db.Close())
	}
	check(t, windrow.Destroy(path))
	_, err := windrow.Open(path, &windrow.Options{ErrorIfMissing: true})
	is(t, err, windrow.ErrNotFound)
}

func TestOpenChecksItsArguments(t *testing.T) {
	db, _ := opened(t, nil)
	path := t.TempDir()
	other, err := windrow.Open(path, &windrow.Options{ErrorIfExists: true})
	check(t, err)
	_, err = windrow.Open(path, nil)
	is(t, err, windrow.ErrLocked)
	check(t, other.Close())
	_, err = windrow.Open(path, &windrow.Options{ErrorIfExists: true})
	is(t, err, windrow.ErrAlreadyExists)
	for _, options := range []windrow.Options{
		{BackgroundThreads: -1},
		{BackgroundThreads: 5000},
		{MaxWALBytes: -1},
		{ScrubInterval: -1},
		{MergeOperators: map[string]windrow.MergeOperator{"main": {Name: "add"}}},
		{MergeOperators: map[string]windrow.MergeOperator{"ma\x00in": {Name: "windrow.least"}}},
		{Keyspace: &windrow.KeyspaceOptions{Preset: 77}},
		{Keyspace: &windrow.KeyspaceOptions{BlockBytes: 1}},
		{Keyspace: &windrow.KeyspaceOptions{MemtableBytes: -1}},
		{Keyspace: &windrow.KeyspaceOptions{Compression: 77}},
	} {
		_, err = windrow.Open(path, &options)
		is(t, err, windrow.ErrInvalidArgument)
	}
	_, err = windrow.Open("a\x00b", nil)
	is(t, err, windrow.ErrInvalidArgument)
	_, err = db.Keyspace("")
	is(t, err, windrow.ErrInvalidArgument)
	_, err = db.KeyspaceWith("other", &windrow.KeyspaceOptions{SizeRatio: 1})
	is(t, err, windrow.ErrInvalidArgument)
}

// Each field reaches the field of its name: the statistics and the errors name what is wrong.
func TestAllOptionsAreTaken(t *testing.T) {
	db, main := opened(t, &windrow.Options{
		Sync: true, Unmapped: true, LockTimeout: 10 * time.Millisecond, MemoryBudget: -1, CacheBytes: 8 << 20,
		MaxWALBytes: 64 << 20, BackgroundThreads: 1, MaxOpenFiles: 64, CompactionBytesPerSecond: 1 << 30,
		ReserveBytes: -1, ScrubInterval: time.Minute,
		Keyspace: &windrow.KeyspaceOptions{
			Preset: windrow.Leveling, MemtableBytes: 1 << 20, SizeRatio: 4, Scaling: 1, BaseBytes: 4 << 20,
			FileBytes: 1 << 20, BlockBytes: 1024, BitsPerKey: -1, UniformFilters: true, Compression: windrow.LZ4,
			Level0Runs: 2, SegmentLimit: 3, MaxSpaceAmp: math.Inf(1), MediumFrom: -1, LargeFrom: -1,
			MediumInPlaceEarly: false,
		},
		MergeOperators: map[string]windrow.MergeOperator{"main": {Name: "windrow.greatest"}},
	})
	check(t, main.Merge([]byte("a"), []byte("1")))
	check(t, main.Merge([]byte("a"), []byte("3")))
	check(t, main.Merge([]byte("a"), []byte("2")))
	equal(t, get(t, main, "a"), "3")
	for _, one := range []struct {
		name    string
		options windrow.KeyspaceOptions
	}{
		{"memtable_bytes", windrow.KeyspaceOptions{MemtableBytes: 1}},
		{"size_ratio", windrow.KeyspaceOptions{SizeRatio: 1}},
		{"scaling", windrow.KeyspaceOptions{Scaling: 2}},
		{"file_bytes", windrow.KeyspaceOptions{FileBytes: 1}},
		{"block_bytes", windrow.KeyspaceOptions{BlockBytes: 1}},
		{"bits_per_key", windrow.KeyspaceOptions{BitsPerKey: 65}},
		{"level0_runs", windrow.KeyspaceOptions{Level0Runs: 65}},
		{"segment", windrow.KeyspaceOptions{SegmentLimit: 13}},
		{"max_space_amp", windrow.KeyspaceOptions{MaxSpaceAmp: 1}},
	} {
		_, err := db.KeyspaceWith("other", &one.options)
		is(t, err, windrow.ErrInvalidArgument)
		if !strings.Contains(err.Error(), one.name) {
			t.Errorf("the error about %s is %v", one.name, err)
		}
	}
}

// Each option that languages can set by its name has a field.
func TestNoOptionIsForgotten(t *testing.T) {
	names := func(file, pattern string) []string {
		text, err := os.ReadFile(file)
		check(t, err)
		var found []string
		for _, match := range regexp.MustCompile(pattern).FindAllStringSubmatch(string(text), -1) {
			found = append(found, match[1])
		}
		slices.Sort(found)
		return slices.Compact(found)
	}
	expected := names("../../crates/windrow-ffi/src/settings.rs", `(?m)^    "(\w+)": `)
	equal(t, len(expected) > 30, true)
	equal(t, fmt.Sprint(names("options.go", `set\.\w+\("(\w+)"`)), fmt.Sprint(expected))
}

// Without a log the next open finds the state of the last persist, and without the two others there are no files of theirs.
func TestWithoutLogs(t *testing.T) {
	path := t.TempDir()
	options := &windrow.Options{NoLog: true, JobLogBytes: -1, StatusInterval: -1, LatencyInterval: -1,
		Keyspace: &windrow.KeyspaceOptions{MediumNeverInPlace: true, MediumAsWritten: true}}
	db, err := windrow.Open(path, options)
	check(t, err)
	main := keyspace(t, db, "main")
	put(t, main, "a", "1")
	check(t, db.Persist(context.Background()))
	put(t, main, "b", "2")
	is(t, main.Put([]byte("c"), nil, windrow.Sync), windrow.ErrInvalidArgument)
	check(t, db.Close())
	for _, name := range []string{"LOG", "STATUS"} {
		_, err = os.Stat(filepath.Join(path, name))
		is(t, err, os.ErrNotExist)
	}
	db, err = windrow.Open(path, options)
	check(t, err)
	equal(t, text(t, keyspace(t, db, "main").Entries(windrow.All)), "a=1 ")
	check(t, db.Close())
	_, err = windrow.Open(path, &windrow.Options{NoLog: true, Sync: true})
	is(t, err, windrow.ErrInvalidArgument)
}

func TestKeyspacesAreNamed(t *testing.T) {
	db, main := opened(t, nil)
	_, err := db.ExistingKeyspace("first")
	is(t, err, windrow.ErrNotFound)
	first := keyspace(t, db, "first")
	second, err := db.KeyspaceWith("second", &windrow.KeyspaceOptions{LargeFrom: -1})
	check(t, err)
	put(t, first, "a", "1")
	put(t, second, "a", "2")
	check(t, db.SwapKeyspaces("first", "second"))
	equal(t, get(t, keyspace(t, db, "first"), "a"), "2")
	check(t, first.Rename("third"))
	names, err := db.Keyspaces()
	check(t, err)
	if !slices.Contains(names, "third") || slices.Contains(names, "second") || !slices.IsSorted(names) {
		t.Fatal(names)
	}
	check(t, db.DropKeyspace("third"))
	_, err = first.Get([]byte("a"))
	is(t, err, windrow.ErrNotFound)
	check(t, second.Close())
	check(t, second.Close())
	is(t, second.Put([]byte("a"), nil), windrow.ErrClosed)
	equal(t, get(t, main, "a"), "missing")
	equal(t, get(t, keyspace(t, db, "first"), "a"), "2")
}

func TestCopiesAndMaintenance(t *testing.T) {
	db, main := opened(t, nil)
	ctx := context.Background()
	for i := range 1000 {
		put(t, main, string(rune('a'+i%26))+strings.Repeat("k", i/26), strings.Repeat("v", i))
	}
	check(t, db.Persist(ctx))
	check(t, db.Flush(ctx))
	check(t, main.Compact(ctx, windrow.All))
	check(t, db.WaitIdle(ctx))
	check(t, db.Verify(ctx))
	count, err := main.ApproximateCount(windrow.Prefix([]byte("b")))
	check(t, err)
	if count == 0 || count > 200 {
		t.Errorf("about %d of 1000 keys begin with b", count)
	}
	bytes, err := main.ApproximateBytes(windrow.All)
	check(t, err)
	if bytes == 0 {
		t.Error("the files have no bytes")
	}
	stats, err := db.Stats()
	check(t, err)
	var parsed map[string]any
	check(t, json.Unmarshal(stats, &parsed))
	if len(parsed) == 0 {
		t.Error("the statistics are empty")
	}

	path := filepath.Join(t.TempDir(), "copy")
	check(t, db.Checkpoint(ctx, path))
	is(t, db.Checkpoint(ctx, path), windrow.ErrAlreadyExists)
	copied, err := windrow.OpenReadOnly(path, nil)
	check(t, err)
	defer copied.Close()
	equal(t, get(t, keyspace(t, copied, "main"), "b"), "v")
	is(t, keyspace(t, copied, "main").Put([]byte("a"), nil), windrow.ErrReadOnly)
}

func TestAnEndedContextEndsTheWait(t *testing.T) {
	db, main := opened(t, nil)
	ctx, cancel := context.WithCancel(context.Background())
	check(t, db.Flush(ctx))
	check(t, main.Compact(ctx, windrow.All))
	cancel()
	for _, call := range []func() error{
		func() error { return db.Flush(ctx) },
		func() error { return db.Persist(ctx) },
		func() error { return db.WaitIdle(ctx) },
		func() error { return db.Verify(ctx) },
		func() error { return db.Checkpoint(ctx, filepath.Join(t.TempDir(), "copy")) },
		func() error { return main.Compact(ctx, windrow.All) },
		func() error { _, err := db.BeginLocking(ctx); return err },
		func() error { return db.Transact(ctx, func(*windrow.Transaction) error { return nil }) },
	} {
		is(t, call(), context.Canceled)
	}
}

func TestErrorsHaveKindsAndWords(t *testing.T) {
	_, main := opened(t, nil)
	err := main.Put(nil, []byte("1"))
	is(t, err, windrow.ErrInvalidArgument)
	var failed *windrow.Error
	if !errors.As(err, &failed) || failed.Kind != windrow.ErrInvalidArgument || failed.Key != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(err.Error(), "windrow: ") || !strings.Contains(err.Error(), "at least one byte") {
		t.Error(err)
	}
	if errors.Is(err, windrow.ErrClosed) || errors.Is(err, os.ErrClosed) {
		t.Error("the error is of two kinds")
	}
	equal(t, windrow.ErrKeyNotFound.Error(), "windrow: key not found")
	equal(t, windrow.Kind(77).Error(), "windrow: error 77")
	equal(t, windrow.Version(), "0.1.0")
}
