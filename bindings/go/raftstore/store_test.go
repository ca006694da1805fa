package raftstore

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"reflect"
	"sync"
	"testing"
	"time"

	"github.com/hashicorp/raft"
	windrow "github.com/windrow-db/windrow/bindings/go"
)

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func open(t testing.TB, path string) *Store {
	t.Helper()
	store, err := Open(path, nil)
	check(t, err)
	return store
}

func TestLogsComeBackAsTheyWere(t *testing.T) {
	path := t.TempDir()
	store := open(t, path)
	logs := []*raft.Log{
		{Index: 1},
		{Index: 2, Term: math.MaxUint64, Type: raft.LogConfiguration, Data: []byte("data")},
		{Index: 5, Term: 3, Extensions: []byte("more"), AppendedAt: time.Now().UTC().Round(0)},
		{Index: math.MaxUint64, Data: bytes.Repeat([]byte("x"), 100_000), Extensions: []byte{0}},
	}
	check(t, store.StoreLogs(logs))
	check(t, store.StoreLogs(nil))
	check(t, store.Set([]byte("name"), nil))
	check(t, store.Close())
	store = open(t, path)
	defer store.Close()
	for _, log := range logs {
		var found raft.Log
		check(t, store.GetLog(log.Index, &found))
		if !reflect.DeepEqual(*log, found) {
			t.Errorf("%+v is not %+v", found, *log)
		}
	}
	var log raft.Log
	if err := store.GetLog(3, &log); !errors.Is(err, raft.ErrLogNotFound) {
		t.Error(err)
	}
	value, err := store.Get([]byte("name"))
	check(t, err)
	if len(value) != 0 {
		t.Error(value)
	}
	if _, err := store.GetUint64([]byte("name")); err == nil || errors.Is(err, ErrKeyNotFound) {
		t.Error(err)
	}
}

func TestRangesAreDeletedWithBothEnds(t *testing.T) {
	store := open(t, t.TempDir())
	defer store.Close()
	var logs []*raft.Log
	for index := uint64(1); index <= 300; index++ {
		logs = append(logs, &raft.Log{Index: index})
	}
	check(t, store.StoreLogs(logs))
	ends := func(first, last uint64) {
		t.Helper()
		foundFirst, err := store.FirstIndex()
		check(t, err)
		foundLast, err := store.LastIndex()
		check(t, err)
		if foundFirst != first || foundLast != last {
			t.Fatalf("the ends are %d and %d", foundFirst, foundLast)
		}
	}
	ends(1, 300)
	check(t, store.DeleteRange(1, 255))
	ends(256, 300)
	check(t, store.DeleteRange(300, 299))
	check(t, store.DeleteRange(300, math.MaxUint64))
	ends(256, 299)
	check(t, store.DeleteRange(0, math.MaxUint64))
	ends(0, 0)
}

func TestDamagedLogsAreErrors(t *testing.T) {
	log := raft.Log{Index: 1, Term: 300, Data: []byte("data"), Extensions: []byte("more"), AppendedAt: time.Now()}
	value, err := encode(nil, &log)
	check(t, err)
	for length := range len(value) - len(log.Data) {
		if err := decode(value[:length], 1, new(raft.Log)); err == nil {
			t.Errorf("%d bytes are no log", length)
		}
	}
	value[0] = 9
	if err := decode(value, 1, new(raft.Log)); err == nil {
		t.Error("the format is unknown")
	}
	store := open(t, t.TempDir())
	defer store.Close()
	check(t, store.logs.Put([]byte("short"), value))
	for _, index := range []func() (uint64, error){store.FirstIndex, store.LastIndex} {
		if _, err := index(); err == nil {
			t.Error("the key is no index")
		}
	}
}

func TestAClosedStoreIsAnError(t *testing.T) {
	store := open(t, t.TempDir())
	check(t, store.Close())
	check(t, store.Close())
	_, err := store.FirstIndex()
	for _, err := range []error{err, store.StoreLog(&raft.Log{Index: 1}), store.Set([]byte("a"), nil),
		store.GetLog(1, new(raft.Log)), store.DeleteRange(1, 2)} {
		if !errors.Is(err, windrow.ErrClosed) {
			t.Error(err)
		}
	}
}

// machine counts what was applied to it.
type machine struct {
	sync.Mutex
	applied []string
}

func (machine *machine) Apply(log *raft.Log) any {
	machine.Lock()
	defer machine.Unlock()
	machine.applied = append(machine.applied, string(log.Data))
	return len(machine.applied)
}

func (machine *machine) Snapshot() (raft.FSMSnapshot, error) {
	return nil, errors.New("the logs suffice")
}

func (machine *machine) Restore(io.ReadCloser) error {
	return errors.New("the logs suffice")
}

// Three servers elect a leader, apply commands, stop, and have all of them after a restart.
func TestAClusterKeepsItsLog(t *testing.T) {
	var paths [3]string
	for i := range paths {
		paths[i] = t.TempDir()
	}
	for round := range 3 {
		var servers [3]*raft.Raft
		var machines [3]machine
		var stores [3]*Store
		var transports [3]*raft.InmemTransport
		var cluster raft.Configuration
		for i := range servers {
			address := raft.ServerAddress(fmt.Sprint("server ", i))
			_, transports[i] = raft.NewInmemTransport(address)
			cluster.Servers = append(cluster.Servers, raft.Server{ID: raft.ServerID(address), Address: address})
		}
		for i := range servers {
			for j := range servers {
				transports[i].Connect(transports[j].LocalAddr(), transports[j])
			}
			config := raft.DefaultConfig()
			config.LocalID = cluster.Servers[i].ID
			config.LogOutput = io.Discard
			stores[i] = open(t, paths[i])
			snapshots := raft.NewDiscardSnapshotStore()
			if round == 0 {
				check(t, raft.BootstrapCluster(config, stores[i], stores[i], snapshots, transports[i], cluster))
			}
			var err error
			servers[i], err = raft.NewRaft(config, &machines[i], stores[i], stores[i], snapshots, transports[i])
			check(t, err)
		}
		const commands = 20
		for done := 0; done < commands; {
			for _, server := range servers {
				if server.State() == raft.Leader && done < commands {
					if server.Apply(fmt.Appendf(nil, "%d %d", round, done), time.Minute).Error() == nil {
						done++
					}
				}
			}
			time.Sleep(time.Millisecond)
		}
		for _, server := range servers {
			if server.State() == raft.Leader {
				check(t, server.Barrier(time.Minute).Error())
			}
		}
		longest := []string{}
		for i, server := range servers {
			check(t, server.Shutdown().Error())
			check(t, stores[i].Close())
			machines[i].Lock()
			if len(machines[i].applied) > len(longest) {
				longest = machines[i].applied
			}
			machines[i].Unlock()
		}
		seen := map[string]bool{}
		for _, command := range longest {
			seen[command] = true
		}
		for before := range round + 1 {
			for i := range commands {
				if !seen[fmt.Sprintf("%d %d", before, i)] {
					t.Fatalf("the command %d of round %d is lost in round %d", i, before, round)
				}
			}
		}
	}
}
