// Package raftboltdb has the names that the tests of raft-boltdb use, for a store of Windrow.
package raftboltdb

import (
	"github.com/hashicorp/raft"
	v1 "github.com/hashicorp/raft-boltdb"
	"github.com/windrow-db/windrow/bindings/go/raftstore"
	"go.etcd.io/bbolt"
)

// What TestNewBoltStore looks for in a file of bbolt.
const (
	dbFileMode = 0600
	dbLogs     = "logs"
	dbConf     = "conf"
)

var ErrKeyNotFound = raftstore.ErrKeyNotFound

type BoltStore struct {
	*raftstore.Store
	path string
}

// Options: those of bbolt have no effect.
type Options struct {
	Path        string
	BoltOptions *bbolt.Options
}

func New(options Options) (*BoltStore, error) {
	store, err := raftstore.Open(options.Path, nil)
	return &BoltStore{store, options.Path}, err
}

func NewBoltStore(path string) (*BoltStore, error) {
	return New(Options{Path: path})
}

func MigrateToV2(source, destination string) (*BoltStore, error) {
	from, err := v1.NewBoltStore(source)
	if err != nil {
		return nil, err
	}
	defer from.Close()
	to, err := NewBoltStore(destination)
	if err != nil {
		return nil, err
	}
	first, err := from.FirstIndex()
	if err != nil {
		return nil, err
	}
	last, err := from.LastIndex()
	if err != nil {
		return nil, err
	}
	for index := first; index <= last; index++ {
		var log raft.Log
		if err := from.GetLog(index, &log); err != nil {
			return nil, err
		}
		if err := to.StoreLog(&log); err != nil {
			return nil, err
		}
	}
	return to, nil
}
