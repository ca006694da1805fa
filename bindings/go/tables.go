package windrow

/*
#include <stdlib.h>
#include "calls.h"
*/
import "C"

import (
	"runtime"
	"strings"
	"sync"
	"unsafe"
)

// TableWriter writes a table file, which [DB.Ingest] adds to a database later. Its calls run one after the other. End it
// with Finish or Close.
type TableWriter struct {
	handle  *tableHandle
	cleanup runtime.Cleanup
}

type tableHandle struct {
	sync.Mutex
	// Nil after the end.
	pointer *C.windrow_table_writer
}

// CreateTable creates the table file path, which does not exist. Of the options those of keyspaces count.
func CreateTable(path string, options *Options) (*TableWriter, error) {
	made, err := options.build()
	if err != nil {
		return nil, err
	}
	defer C.windrow_options_free(made)
	var pointer *C.windrow_table_writer
	err = withText(path, func(path *C.char, failed **C.windrow_error) {
		C.windrow_table_writer_create(path, made, &pointer, failed)
	})
	if err != nil {
		return nil, err
	}
	writer := &TableWriter{handle: &tableHandle{pointer: pointer}}
	writer.cleanup = runtime.AddCleanup(writer, (*tableHandle).free, writer.handle)
	return writer, nil
}

func (handle *tableHandle) free() {
	handle.Lock()
	defer handle.Unlock()
	C.windrow_table_writer_free(handle.pointer)
	handle.pointer = nil
}

func (writer *TableWriter) with(call func(pointer *C.windrow_table_writer, failed **C.windrow_error)) error {
	writer.handle.Lock()
	defer writer.handle.Unlock()
	if writer.handle.pointer == nil {
		return ErrClosed
	}
	var failed *C.windrow_error
	call(writer.handle.pointer, &failed)
	return failure(failed)
}

// Put sets the value of key, which is above all keys so far. A value has at most 1 MiB.
func (writer *TableWriter) Put(key, value []byte) error {
	return writer.with(func(pointer *C.windrow_table_writer, failed **C.windrow_error) {
		C.windrow_table_writer_put(pointer, lend(key), lend(value), failed)
	})
}

// Delete removes key, which is above all keys so far, from the keyspace that takes the file.
func (writer *TableWriter) Delete(key []byte) error {
	return writer.with(func(pointer *C.windrow_table_writer, failed **C.windrow_error) {
		C.windrow_table_writer_delete(pointer, lend(key), failed)
	})
}

// Finish completes the file and returns the number of its entries. After an error the file is removed. The writer has ended
// in any case.
func (writer *TableWriter) Finish() (uint64, error) {
	var count C.uint64_t
	err := writer.with(func(pointer *C.windrow_table_writer, failed **C.windrow_error) {
		writer.cleanup.Stop()
		writer.handle.pointer = nil
		C.windrow_table_writer_finish(pointer, &count, failed)
	})
	return uint64(count), err
}

// Close removes a file that is not finished. It does nothing after the end.
func (writer *TableWriter) Close() error {
	writer.cleanup.Stop()
	writer.handle.free()
	return nil
}

// TableFile is a table file, and the keyspace that takes it.
type TableFile struct {
	Keyspace *Keyspace
	Path     string
}

// Ingest adds table files, all of them in one step or none, and returns the number of their entries. It is durable at the
// return. The files belong to the database then.
func (db *DB) Ingest(files ...TableFile) (uint64, error) {
	keyspaces, paths := make([]*Keyspace, len(files)), make([]*C.char, len(files))
	for i, file := range files {
		if strings.ContainsRune(file.Path, 0) {
			return 0, invalid("%q has a null byte", file.Path)
		}
		keyspaces[i], paths[i] = file.Keyspace, C.CString(file.Path)
		defer C.free(unsafe.Pointer(paths[i]))
	}
	var count C.uint64_t
	err := db.withAll(keyspaces, func(database *C.windrow_database, keyspaces []*C.windrow_keyspace,
		failed **C.windrow_error) {
		C.windrow_ingest(database, unsafe.SliceData(keyspaces), unsafe.SliceData(paths), C.size_t(len(paths)), &count,
			failed)
	})
	return uint64(count), err
}
