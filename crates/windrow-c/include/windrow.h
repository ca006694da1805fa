// Windrow: an embedded, ordered, persistent key-value store. The C interface.
//
// Made by cbindgen from crates/windrow-c: change it there.
//
// Rules for all functions:
//
// Errors. A function that can fail returns a code: WINDROW_OK, or the kind of the error. Its last parameter receives the
// error with a sentence for people, or null if there is none; pass null if the code suffices. Free errors with
// windrow_error_free. A result parameter is always set: to null, 0 or false after an error. It may be null, too.
//
// Ownership. A function that returns a handle, or puts one into a result parameter, gives it to the caller, who frees it
// with the function that its type names. Functions whose names end with "free", "close", "commit", "roll_back", "prepare" or "finish"
// take their handle, also after an error. All other functions borrow what they are given until they return,
// and copy what they keep. Bytes that a function lends stay valid as long as its comment says.
//
// Order. Handles may be freed in any order: each keeps what it needs. A database closes with windrow_close, or with the last
// of its handles. After windrow_close the calls of keyspaces and commits return WINDROW_CLOSED. Cursors go on as
// long as they need no file that is not open, and transactions without locks take writes until their commit.
//
// Threads. The comment of each type says how many threads may use a handle at once. A handle that one thread at a time
// uses may move to another thread.
//
// Misuse. Null is allowed for each parameter: it is an error, or does nothing. Numbers that are none of the constants,
// null bytes with a length, and text that is not UTF-8 are errors. A handle after its release, a handle of another type,
// wrong lengths, and one handle in two threads against its comment are undefined, as everywhere in C. A library with debug
// assertions (profile dev) keeps a list of its handles: one that was released, or is of another type, ends the process with a
// sentence. It is not found if another one of its type has its address by now. A handle that was freed by other means is
// found when the next one gets its address.
//
// Panics. None enters C: it becomes WINDROW_INTERNAL, and is a bug of Windrow. Callbacks must not throw.
//
// Callbacks that options keep have a state of the caller and a function that frees it. Windrow calls it exactly once, when
// the last options and database that use the callbacks are gone, or before the call that sets them returns an error.
//
// Forks. A child process must not use handles of its parent.


#ifndef WINDROW_H
#define WINDROW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
// The bytes at a pointer, as an argument of a call.
#ifdef __cplusplus
#define WINDROW_BYTES(pointer, size) (windrow_bytes{(const uint8_t*)(pointer), (size)})
#else
#define WINDROW_BYTES(pointer, size) ((windrow_bytes){(const uint8_t*)(pointer), (size)})
#endif


// The newest backup, for functions that take the number of a backup.
#define WINDROW_BACKUP_NEWEST 0

// The write sets the value.
#define WINDROW_WRITE_PUT 0

// The write removes the key.
#define WINDROW_WRITE_DELETE 1

// The write adds an operand, which is the value.
#define WINDROW_WRITE_MERGE 2

// The write removes the key and all keys behind it to before the value; all of them, if the value's `data` is null.
#define WINDROW_WRITE_DELETE_RANGE 3

// The entry does not exist.
#define WINDROW_EXPIRY_ABSENT 0

// The entry stays until it is removed or replaced.
#define WINDROW_EXPIRY_NEVER UINT64_MAX

// The result is in the sink.
#define WINDROW_MERGE_DONE 0

// Operands without a base stay as they are: only for `partial_merge`.
#define WINDROW_MERGE_NOT 1

// The entry stays as it is.
#define WINDROW_FILTER_KEEP 0

// The entry is removed.
#define WINDROW_FILTER_REMOVE 1

// The entry gets the value that is in the sink.
#define WINDROW_FILTER_REPLACE 2

// The change is a batch: writes that were committed together.
#define WINDROW_CHANGE_BATCH 1

// A keyspace was created. It is keyspace 0 of the change.
#define WINDROW_CHANGE_KEYSPACE_CREATED 2

// Keyspace 0 of the change was dropped, with all that earlier batches have written to it.
#define WINDROW_CHANGE_KEYSPACE_DROPPED 3

// Keyspace 0 of the change has the name of keyspace 1 now. If another keyspace had it, that one has the name of keyspace 0.
#define WINDROW_CHANGE_KEYSPACE_RENAMED 4

// A bulk load or an ingestion has added tables to the keyspaces of the change. Their entries are in no change: copy these
// keyspaces from a snapshot, and go on behind it. There are no keyspaces if no consumer holds the change: then they are not
// known, or the load has failed.
#define WINDROW_CHANGE_TABLES_ADDED 5

// The call has done what it says.
#define WINDROW_OK 0

// The call's arguments or options are wrong: correct the call.
#define WINDROW_INVALID_ARGUMENT 1

// The database, keyspace, backup or consumer does not exist, or was dropped.
#define WINDROW_NOT_FOUND 2

// The database exists already, or the folder of a checkpoint or of a restored backup is not empty.
#define WINDROW_ALREADY_EXISTS 3

// This or another process has the database or the backups open.
#define WINDROW_LOCKED 4

// The disk or a quota is full: nothing was lost; free space and try again.
#define WINDROW_NO_SPACE 5

// The operating system reported an error.
#define WINDROW_IO 6

// Stored bytes are damaged. The message names the file and the offset if they are known.
#define WINDROW_CORRUPTION 7

// The data needs a newer version of Windrow or a feature that is off.
#define WINDROW_UNSUPPORTED 8

// An earlier write or sync failed, and it is unknown what is durable. Reads continue, writes fail: reopen the database.
#define WINDROW_POISONED 9

// The database has been closed, or the transaction of the cursor has ended.
#define WINDROW_CLOSED 10

// The database is, or the backups are, open for reading only.
#define WINDROW_READ_ONLY 11

// Another write came in between: nothing was written; try the transaction again.
#define WINDROW_CONFLICT 12

// The transaction and others wait for each other's locks: roll it back, so that they go on, and try it again.
#define WINDROW_DEADLOCK 13

// A lock was not free in time: roll the transaction back and try it again.
#define WINDROW_TIMED_OUT 14

// The operands of a key could not be folded: its merge operator is missing or has failed. Nothing is lost.
#define WINDROW_MERGE 15

// Changes that were asked for are not kept any more: begin again with a snapshot and the changes behind it. Or a secondary
// was stopped for too long: catch up again.
#define WINDROW_FELL_BEHIND 16

// A bug in Windrow, or an error that is newer than this header. The message says what happened.
#define WINDROW_INTERNAL 100

// For most loads.
#define WINDROW_PRESET_BALANCED 0

// Plain leveled compaction.
#define WINDROW_PRESET_LEVELING 1

// The Autumn paper's levels alone.
#define WINDROW_PRESET_AUTUMN 2

// The Parallax paper's placement of values alone.
#define WINDROW_PRESET_PARALLAX 3

// The LSMA paper's append merges alone.
#define WINDROW_PRESET_LSMA 4

// No compression.
#define WINDROW_COMPRESSION_NONE 0

// LZ4: fast.
#define WINDROW_COMPRESSION_LZ4 1

// Zstandard: smaller and slower; not in every build.
#define WINDROW_COMPRESSION_ZSTD 2

// The source has set an entry.
#define WINDROW_SOURCE_ENTRY 0

// The source has no more entries.
#define WINDROW_SOURCE_END 1

// The durability that the options of the database name.
#define WINDROW_DURABILITY_DEFAULT 0

// Writes survive the end of the process, but not a power failure.
#define WINDROW_DURABILITY_BUFFERED 1

// Writes survive a power failure: the log is synced before the call returns.
#define WINDROW_DURABILITY_SYNC 2

// The commit depends on everything that the transaction has read.
#define WINDROW_ISOLATION_SERIALIZABLE 0

// The commit depends on the keys that the transaction writes, or has read for an update.
#define WINDROW_ISOLATION_SNAPSHOT 1

// A read without an intent: the commit may depend on it.
#define WINDROW_READ_PLAIN 0

// A read before a write of the key: a locking transaction locks it, and every commit depends on it.
#define WINDROW_READ_FOR_UPDATE 1

// A read that no other transaction may make wrong: a locking transaction locks the key beside others that do the same.
#define WINDROW_READ_FOR_SHARE 2

// Backups of a database in a folder. Any thread may use it; one call at a time works, and others wait. It has the folder
// to itself until it is freed, or together with others that read only.
typedef struct windrow_backups windrow_backups;

// Writes to any keyspaces of one database. One thread at a time uses a batch.
typedef struct windrow_batch windrow_batch;

// An entry about which a compaction filter decides. It is valid during the call that it is passed to.
typedef struct windrow_candidate windrow_candidate;

// One change of a database. Any thread may use it. It stays valid after the close of the database.
typedef struct windrow_change windrow_change;

// The changes of a database in the commit order: each once, when readers can see it and it is durable. One thread at a
// time uses it. A close of the database by another thread ends its wait.
typedef struct windrow_changes windrow_changes;

// A named consumer of the changes of a database, whose place survives. The database keeps every change behind it, within
// the bounds of the options. Any thread may use it.
typedef struct windrow_consumer windrow_consumer;

// A position among the entries of a keyspace in one state. One thread at a time uses a cursor.
//
// A new cursor has no position. It may change its direction at any step. A move past either end leaves it without a
// position until the next seek. It keeps the files that it reads, and so their disk space, until it is freed.
typedef struct windrow_cursor windrow_cursor;

// An open database. Any thread may use it. It stays open while it, or a handle that was made from it, is there.
typedef struct windrow_database windrow_database;

// An error: a code and a sentence. Any thread may use it.
typedef struct windrow_error windrow_error;

// A keyspace of an open database. Any thread may use it.
typedef struct windrow_keyspace windrow_keyspace;

// Options of a keyspace. One thread at a time uses them. Whoever is given them copies them.
//
// A setter stores a value. The open of the keyspace checks all of them and names each fault. A setter ignores null.
// `windrow_keyspace_options_set` has all options, also those without a setter of their own.
typedef struct windrow_keyspace_options windrow_keyspace_options;

// Options of a database. One thread at a time uses them. An open copies them.
//
// A setter stores a value. The open checks all of them and names each fault. A setter ignores null. `windrow_options_set` has
// all options, also those without a setter of their own.
typedef struct windrow_options windrow_options;

// A reader of a database that this or another process may have open for writing. Any thread may use it. It keeps the files
// that its states need in the folder until it and they are freed.
typedef struct windrow_secondary windrow_secondary;

// Takes the bytes of a result. It is valid during the call that it is passed to.
typedef struct windrow_sink windrow_sink;

// The state of all keyspaces at one moment. Any thread may use it. Compactions keep what it can read.
typedef struct windrow_snapshot windrow_snapshot;

// Writes a table file that `windrow_ingest` adds to a database later. One thread at a time uses it.
typedef struct windrow_table_writer windrow_table_writer;

// A transaction. One thread at a time uses it and its cursors.
//
// It reads the state at its beginning, with its own writes over it. Its commit fails with `WINDROW_CONFLICT`, and writes
// nothing, if another write has changed meanwhile what it depends on: begin another one then.
typedef struct windrow_transaction windrow_transaction;

// A value that a read has found. It keeps its bytes in place, without a copy if they are in a file, also after later
// writes and after the close of the database. It keeps the file, too: free values soon. Any thread may use it.
typedef struct windrow_value windrow_value;

// Bytes that somebody else owns: a key, a value, an operand, a bound. `data` may be null if `length` is 0.
typedef struct {
  // The first byte.
  const uint8_t *data;
  // The number of bytes.
  size_t length;
} windrow_bytes;

// The keys from `start` on and before `end`. A bound whose `data` is null is none, so a range of zeros is all keys.
typedef struct {
  // The first key.
  windrow_bytes start;
  // The key behind the last one.
  windrow_bytes end;
} windrow_range;

// A write of a batch or of a change. What it points to is valid during the call.
typedef struct {
  // The name of the keyspace.
  windrow_bytes keyspace;
  // One of `WINDROW_WRITE_...`.
  uint32_t kind;
  // The key.
  windrow_bytes key;
  // What `kind` says.
  windrow_bytes value;
  // When a value expires: a time in milliseconds since the start of 1970, or `WINDROW_EXPIRY_NEVER`.
  uint64_t expiry;
} windrow_write;

// Receives a write. Returns whether it wants the next one. It must not throw.
typedef bool (*windrow_visitor)(void *state, const windrow_write *write);

// Appends to `result` the value of `key` after all operands, oldest first, were applied to `base`, whose `data` is null if
// there is no value. Returns `WINDROW_MERGE_DONE`; any other number is an error of this key alone, and loses nothing.
//
// Any thread calls it, several at once, any number of times for the same operands: the result depends on the arguments
// only. It must not throw.
typedef int32_t (*windrow_full_merge)(void *state,
                                      windrow_bytes key,
                                      windrow_bytes base,
                                      const windrow_bytes *operands,
                                      size_t count,
                                      windrow_sink *result);

// Appends to `result` one operand with the effect of all operands, at least two, oldest first, on any base. Returns
// `WINDROW_MERGE_DONE`, or `WINDROW_MERGE_NOT` if there is no such operand; any other number is an error. Otherwise as
// `windrow_full_merge`.
typedef int32_t (*windrow_partial_merge)(void *state,
                                         windrow_bytes key,
                                         const windrow_bytes *operands,
                                         size_t count,
                                         windrow_sink *result);

// Frees the state of callbacks. Windrow calls it once, when nothing uses them any more: neither options nor a database.
typedef void (*windrow_free_state)(void *state);

// Decides about an entry that a compaction rewrites. Returns one of `WINDROW_FILTER_...`; any other number is an error, and
// the entry stays. Any thread calls it, several at once. It may read the database, but not write to it, flush, compact or
// close it. It must not throw.
typedef int32_t (*windrow_filter)(void *state,
                                  const windrow_candidate *candidate,
                                  windrow_sink *replacement);

// Receives an event as a JSON object, whose member `event` names it: `flush_ended`, `compaction_ended`,
// `expired_files_dropped`, `garbage_collection_ended`, `stall_began`, `stall_ended`, `consumer_fell_behind`, `no_space`,
// `space_resumed`, and others that docs/watching.md describes. The text is valid during the call. The thread that causes an
// event makes the call, which may be a writer: return soon. The listener may read the database, but not write to it, flush,
// compact or close it. It must not throw.
typedef void (*windrow_listener)(void *state, const char *event);

// A source of entries. It sets `*key` and `*value` and returns `WINDROW_SOURCE_ENTRY`, or returns `WINDROW_SOURCE_END`. Any
// other number ends the load with an error: nothing is loaded. The bytes stay valid until its next call. It must not
// throw, close the database, or wait for its background work: `windrow_wait_idle` and `windrow_close` are errors in it.
typedef int32_t (*windrow_source)(void *state, windrow_bytes *key, windrow_bytes *value);

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// The version of Windrow, for example "0.1.0". Valid forever.
const char *windrow_version(void);

// Opens the folder `folder` of backups, or creates it. Its calls read at most `bytes_per_second`; 0 is no bound.
int32_t windrow_backups_open(const char *folder,
                             uint64_t bytes_per_second,
                             windrow_backups **backups,
                             windrow_error **error);

// As `windrow_backups_open`, to list, verify and restore backups of a folder that exists.
int32_t windrow_backups_open_read_only(const char *folder,
                                       uint64_t bytes_per_second,
                                       windrow_backups **backups,
                                       windrow_error **error);

// Frees the handle and unlocks the folder. Null is allowed.
void windrow_backups_free(windrow_backups *backups);

// Makes a backup of the database as of one moment during the call, with all writes that were acknowledged before. It copies
// what the folder does not have yet. It is durable when this returns; after an error it does not exist. `*number` is its
// number.
int32_t windrow_backup(const windrow_database *database,
                       const windrow_backups *backups,
                       uint64_t *number,
                       windrow_error **error);

// The backups as a JSON array, oldest first. Each is an object with its `number`, and with `created` (milliseconds since
// 1970), `sequence`, `files`, `bytes` and `own_bytes` (those that no other backup needs), or with the `code` and the
// sentence of an `error` if it cannot be used. Free the text with `windrow_text_free`.
int32_t windrow_backups_list_json(const windrow_backups *backups,
                                  char **json,
                                  windrow_error **error);

// Reads all bytes of all backups and compares them with their checksums. Returns the first damage as an error.
int32_t windrow_backups_verify(const windrow_backups *backups,
                               windrow_error **error);

// Writes the database of the backup `number`, or of `WINDROW_BACKUP_NEWEST`, to the folder `folder`, which is empty or
// missing. All bytes are checked on the way, and the database is durable when this returns. After an error there is none.
int32_t windrow_backups_restore(const windrow_backups *backups,
                                uint64_t number,
                                const char *folder,
                                windrow_error **error);

// Removes all backups but the `kept` newest ones, at least 1, and the bytes that no other backup needs. `*count` is how many
// were removed.
int32_t windrow_backups_keep_newest(const windrow_backups *backups,
                                    size_t kept,
                                    uint64_t *count,
                                    windrow_error **error);

// Removes the backups that were made longer ago than `milliseconds`, except the newest one. `*count` is how many were
// removed.
int32_t windrow_backups_remove_older(const windrow_backups *backups,
                                     uint64_t milliseconds,
                                     uint64_t *count,
                                     windrow_error **error);

// Removes the backup `number`, or `WINDROW_BACKUP_NEWEST`, whatever its state.
int32_t windrow_backups_remove(const windrow_backups *backups,
                               uint64_t number,
                               windrow_error **error);

// An empty batch.
windrow_batch *windrow_batch_new(void);

// Frees a batch. Null is allowed.
void windrow_batch_free(windrow_batch *batch);

// Removes all writes of the batch, and keeps its memory.
void windrow_batch_clear(windrow_batch *batch);

// The number of writes; 0 for null.
size_t windrow_batch_count(const windrow_batch *batch);

// Adds a write that sets the value of `key`. The bytes are copied.
int32_t windrow_batch_put(windrow_batch *batch,
                          const windrow_keyspace *keyspace,
                          windrow_bytes key,
                          windrow_bytes value,
                          windrow_error **error);

// Adds a write that sets the value of `key` for `ttl` milliseconds from now on.
int32_t windrow_batch_put_with_ttl(windrow_batch *batch,
                                   const windrow_keyspace *keyspace,
                                   windrow_bytes key,
                                   windrow_bytes value,
                                   uint64_t ttl,
                                   windrow_error **error);

// Adds a write that removes `key`.
int32_t windrow_batch_delete(windrow_batch *batch,
                             const windrow_keyspace *keyspace,
                             windrow_bytes key,
                             windrow_error **error);

// Adds a write that removes all keys of a range: those of the keyspace, and those that the batch has set before.
int32_t windrow_batch_delete_range(windrow_batch *batch,
                                   const windrow_keyspace *keyspace,
                                   windrow_range range,
                                   windrow_error **error);

// Adds a write of an operand, as `windrow_merge` does.
int32_t windrow_batch_merge(windrow_batch *batch,
                            const windrow_keyspace *keyspace,
                            windrow_bytes key,
                            windrow_bytes operand,
                            windrow_error **error);

// Writes the batch as one: a reader sees all of it or nothing, and so does an open after a crash. The batch is unchanged
// and can be written again.
int32_t windrow_batch_write(const windrow_database *database,
                            const windrow_batch *batch,
                            uint32_t durability,
                            windrow_error **error);

// The writes of the batch as bytes, for another process or a later time. They name the keyspaces. Free them with
// `windrow_value_free`.
int32_t windrow_batch_to_bytes(const windrow_batch *batch,
                               windrow_value **bytes,
                               windrow_error **error);

// The batch that `windrow_batch_to_bytes` has made bytes of, perhaps for another database: this one needs keyspaces of the
// same names.
int32_t windrow_batch_from_bytes(const windrow_database *database,
                                 windrow_bytes bytes,
                                 windrow_batch **batch,
                                 windrow_error **error);

// Passes the writes of the batch to `visitor`, in the order in which they were added. The visitor must not change the batch.
int32_t windrow_batch_visit(const windrow_batch *batch,
                            windrow_visitor visitor,
                            void *state,
                            windrow_error **error);

// The bytes of a value, valid until it is freed; none for null.
windrow_bytes windrow_value_bytes(const windrow_value *value);

// Frees a value. Null is allowed.
void windrow_value_free(windrow_value *value);

// Frees text that a function of this header has returned for this purpose. Null is allowed.
void windrow_text_free(char *text);

// Appends bytes to a result. Returns false, without effect, for a null sink and for bytes that are none.
bool windrow_sink_append(windrow_sink *sink,
                         windrow_bytes bytes);

// Says in `message`, text for people, why a function fails. It has no effect on a function that does not. Nothing happens
// for null and for bytes that are none.
void windrow_sink_fail(windrow_sink *sink,
                       windrow_bytes message);

// Gives a keyspace a merge operator of the caller. The database records its name, of 1 to 255 bytes: every later open that
// reads or folds its operands must give an operator of this name. Names that begin with `windrow.` are taken.
// `partial_merge` may be null. Options that are freed, and their copies in open databases, share `state`.
int32_t windrow_options_set_merge_callbacks(windrow_options *options,
                                            const char *keyspace,
                                            const char *name,
                                            windrow_full_merge full_merge,
                                            windrow_partial_merge partial_merge,
                                            void *state,
                                            windrow_free_state free_state,
                                            windrow_error **error);

// The key; no bytes for null.
windrow_bytes windrow_candidate_key(const windrow_candidate *candidate);

// The bytes of the value, which are known without a read; 0 for null.
uint64_t windrow_candidate_value_length(const windrow_candidate *candidate);

// When the entry expires, as `windrow_expires_at` says it; `WINDROW_EXPIRY_ABSENT` for null.
uint64_t windrow_candidate_expires_at(const windrow_candidate *candidate);

// The value. This may read it from another file. After an error the entry stays as it is.
int32_t windrow_candidate_value(const windrow_candidate *candidate,
                                windrow_bytes *value,
                                windrow_error **error);

// Gives a keyspace a compaction filter of the caller, which removes or replaces values that compactions come across. The
// database records nothing of it. `name` is for people.
int32_t windrow_options_set_compaction_filter(windrow_options *options,
                                              const char *keyspace,
                                              const char *name,
                                              windrow_filter filter,
                                              void *state,
                                              windrow_free_state free_state,
                                              windrow_error **error);

// Notifies `listener` of the events of the database. A later call replaces it.
int32_t windrow_options_set_listener(windrow_options *options,
                                     windrow_listener listener,
                                     void *state,
                                     windrow_free_state free_state,
                                     windrow_error **error);

// The changes from sequence number `from` on; the first batch may begin before. Nothing is kept for them:
// `WINDROW_FELL_BEHIND` if they are gone already.
int32_t windrow_changes_open(const windrow_database *database,
                             uint64_t from,
                             windrow_changes **changes,
                             windrow_error **error);

// Frees the feed. Null is allowed.
void windrow_changes_free(windrow_changes *changes);

// The next change. Waits for a commit for at most `timeout` milliseconds; `*change` is null if there was none. After an
// error the next call tries the same change again. `WINDROW_FELL_BEHIND`: the change is not kept any more, or the consumer of
// the feed has acknowledged it.
int32_t windrow_changes_next(windrow_changes *changes,
                             uint64_t timeout,
                             windrow_change **change,
                             windrow_error **error);

// Every change before this sequence number was given out, or was before the beginning of the feed; 0 for null.
uint64_t windrow_changes_position(const windrow_changes *changes);

// Frees a change. Null is allowed.
void windrow_change_free(windrow_change *change);

// One of `WINDROW_CHANGE_...`; 0 for null, and for a change that is newer than this header.
uint32_t windrow_change_kind(const windrow_change *change);

// The sequence number of the change; of a batch, that of its last write; 0 for null. A consumer that has done with the
// change acknowledges it.
uint64_t windrow_change_sequence(const windrow_change *change);

// The sequence number of the first write of a batch, and that of any other change; 0 for null.
uint64_t windrow_change_first_sequence(const windrow_change *change);

// The name of keyspace `number` of the change, from 0 on, valid until the change is freed; no bytes behind the last one. A
// batch has none: its writes name them.
windrow_bytes windrow_change_keyspace(const windrow_change *change,
                                      size_t number);

// The number of writes of a batch; 0 for other changes, and for null. Writes to keyspaces that were dropped since are left
// out.
size_t windrow_change_count(const windrow_change *change);

// Passes the writes of a batch to `visitor`, in their order, with the names that the keyspaces had then. Other changes have
// no writes.
int32_t windrow_change_visit(const windrow_change *change,
                             windrow_visitor visitor,
                             void *state,
                             windrow_error **error);

// The writes of a batch as bytes, of which `windrow_batch_from_bytes` makes a batch of another database. Free them with
// `windrow_value_free`. For other changes it is an error.
int32_t windrow_change_to_bytes(const windrow_change *change,
                                windrow_value **bytes,
                                windrow_error **error);

// The consumer `name`, created if missing. A new one begins behind the newest write, and is durable when this returns.
int32_t windrow_consumer_open(const windrow_database *database,
                              const char *name,
                              windrow_consumer **consumer,
                              windrow_error **error);

// Frees the handle. The consumer stays, and holds what it has not acknowledged. Null is allowed.
void windrow_consumer_free(windrow_consumer *consumer);

// The changes behind the place of the consumer. `WINDROW_FELL_BEHIND` if it held too much or was silent for too long: remove
// it and create it anew, copy a snapshot, and go on with the changes behind that.
int32_t windrow_consumer_changes(const windrow_consumer *consumer,
                                 windrow_changes **changes,
                                 windrow_error **error);

// The place of the consumer: it has acknowledged every change up to this sequence number.
int32_t windrow_consumer_acknowledged(const windrow_consumer *consumer,
                                      uint64_t *sequence,
                                      windrow_error **error);

// Notes that the consumer has done with every change up to `sequence`. The place is durable when this returns. It costs two
// syncs, so acknowledge after many changes.
int32_t windrow_consumer_acknowledge(const windrow_consumer *consumer,
                                     uint64_t sequence,
                                     windrow_error **error);

// Forgets the consumer `name`. What nobody else holds is removed.
int32_t windrow_consumer_remove(const windrow_database *database,
                                const char *name,
                                windrow_error **error);

// All consumers as a JSON array, by name. Each is an object with its `name`, its place `acknowledged`, `is_behind`, and the
// `held_bytes` on disk that only consumers need. Free the text with `windrow_text_free`.
int32_t windrow_consumers_json(const windrow_database *database,
                               char **json,
                               windrow_error **error);

// A cursor over the keys of a range, in the present state, or in that of `snapshot` if it is not null.
int32_t windrow_cursor_open(const windrow_keyspace *keyspace,
                            const windrow_snapshot *snapshot,
                            windrow_range range,
                            windrow_cursor **cursor,
                            windrow_error **error);

// A cursor over the keys that begin with `prefix`.
int32_t windrow_cursor_open_prefix(const windrow_keyspace *keyspace,
                                   const windrow_snapshot *snapshot,
                                   windrow_bytes prefix,
                                   windrow_cursor **cursor,
                                   windrow_error **error);

// A cursor over the keys of a range in `count` keyspaces of a database, in the order of their keys, all in its newest state.
// A key that several keyspaces have comes once for each. `windrow_cursor_keyspace` says which one an entry is of.
int32_t windrow_cursor_open_merged(const windrow_database *database,
                                   const windrow_keyspace *const *keyspaces,
                                   size_t count,
                                   windrow_range range,
                                   windrow_cursor **cursor,
                                   windrow_error **error);

// The position of the entry's keyspace in the list that `windrow_cursor_open_merged` was given; 0 for all other cursors,
// without an entry, and for null.
size_t windrow_cursor_keyspace(const windrow_cursor *cursor);

// A cursor over the keys of a range as a transaction sees them. It belongs to the thread of the transaction, and ends
// with it: free it before or after.
int32_t windrow_transaction_cursor_open(windrow_transaction *transaction,
                                        const windrow_keyspace *keyspace,
                                        windrow_range range,
                                        windrow_cursor **cursor,
                                        windrow_error **error);

// A cursor over the keys that begin with `prefix` as a transaction sees them.
int32_t windrow_transaction_cursor_open_prefix(windrow_transaction *transaction,
                                               const windrow_keyspace *keyspace,
                                               windrow_bytes prefix,
                                               windrow_cursor **cursor,
                                               windrow_error **error);

// Frees a cursor. Null is allowed.
void windrow_cursor_free(windrow_cursor *cursor);

// Moves to the first entry. `*is_valid` says whether it exists, here and in all moves.
int32_t windrow_cursor_seek_to_first(windrow_cursor *cursor, bool *is_valid, windrow_error **error);

// Moves to the last entry.
int32_t windrow_cursor_seek_to_last(windrow_cursor *cursor, bool *is_valid, windrow_error **error);

// Moves to the first entry whose key is `key` or greater.
int32_t windrow_cursor_seek(windrow_cursor *cursor,
                            windrow_bytes key,
                            bool *is_valid,
                            windrow_error **error);

// Moves to the next entry.
int32_t windrow_cursor_next(windrow_cursor *cursor, bool *is_valid, windrow_error **error);

// Moves to the previous entry.
int32_t windrow_cursor_prev(windrow_cursor *cursor, bool *is_valid, windrow_error **error);

// Whether the cursor is at an entry; false for null.
bool windrow_cursor_is_valid(const windrow_cursor *cursor);

// The key of the entry; no bytes if the cursor is at no entry. It is valid until the next move, the free of the cursor, or the
// end of its transaction.
windrow_bytes windrow_cursor_key(const windrow_cursor *cursor);

// The value of the entry; no bytes if the cursor is at no entry. It is valid as long as the key. The first call reads a value
// that is stored apart from its key.
int32_t windrow_cursor_value(const windrow_cursor *cursor,
                             windrow_bytes *value,
                             windrow_error **error);

// When the entry expires, as `windrow_expires_at` says it; `WINDROW_EXPIRY_ABSENT` if the cursor is at no entry.
uint64_t windrow_cursor_expires_at(const windrow_cursor *cursor);

// Opens the database in the folder `folder`, or creates it if the options allow that. Null options are the defaults.
int32_t windrow_open(const char *folder,
                     const windrow_options *options,
                     windrow_database **database,
                     windrow_error **error);

// Opens a database for reading only. No call changes the disk. A database has one writer or any number of readers.
int32_t windrow_open_read_only(const char *folder,
                               const windrow_options *options,
                               windrow_database **database,
                               windrow_error **error);

// Makes all writes durable, closes the database and frees the handle, also after an error. All other handles of the
// database stay to be freed; the calls of keyspaces return `WINDROW_CLOSED`. Null is allowed.
int32_t windrow_close(windrow_database *database,
                      windrow_error **error);

// Frees the handle without a close: the database closes with its last handle, and nobody learns of an error. Null is
// allowed.
void windrow_database_free(windrow_database *database);

// Removes the database in the folder `folder` with all its entries. A missing database is no error. The folder stays, with
// its file LOCK and with files of others.
int32_t windrow_destroy(const char *folder,
                        windrow_error **error);

// Makes all writes so far durable: they survive a power failure.
int32_t windrow_persist(const windrow_database *database, windrow_error **error);

// Writes all memtables to tables and waits until they are durable.
int32_t windrow_flush(const windrow_database *database, windrow_error **error);

// Waits until no background work is due.
int32_t windrow_wait_idle(const windrow_database *database, windrow_error **error);

// Makes a copy of the database in the folder `folder`, which is empty or missing. Files are linked where that is possible.
// The copy has all writes so far and is durable when this returns.
int32_t windrow_checkpoint(const windrow_database *database,
                           const char *folder,
                           windrow_error **error);

// Checks every block and every value. Returns the first damage as an error.
int32_t windrow_verify(const windrow_database *database, windrow_error **error);

// The statistics as a JSON object: counters since the open, memory, and the levels of each keyspace. Free them with
// `windrow_text_free`.
int32_t windrow_stats_json(const windrow_database *database,
                           char **json,
                           windrow_error **error);

// The names of all keyspaces as a JSON array, sorted. Free it with `windrow_text_free`.
int32_t windrow_keyspace_names_json(const windrow_database *database,
                                    char **json,
                                    windrow_error **error);

// Opens the keyspace `name` with its recorded options, or creates it.
int32_t windrow_keyspace_open(const windrow_database *database,
                              const char *name,
                              windrow_keyspace **keyspace,
                              windrow_error **error);

// Opens the keyspace `name` and sets its options, or creates it with them.
int32_t windrow_keyspace_open_with(const windrow_database *database,
                                   const char *name,
                                   const windrow_keyspace_options *options,
                                   windrow_keyspace **keyspace,
                                   windrow_error **error);

// Opens the keyspace `name` if it exists; otherwise `*keyspace` is null, and that is no error.
int32_t windrow_keyspace_open_existing(const windrow_database *database,
                                       const char *name,
                                       windrow_keyspace **keyspace,
                                       windrow_error **error);

// Drops the keyspace `name` with all its entries.
int32_t windrow_keyspace_drop(const windrow_database *database,
                              const char *name,
                              windrow_error **error);

// Exchanges the names of two keyspaces in one step.
int32_t windrow_keyspaces_swap(const windrow_database *database,
                               const char *first,
                               const char *second,
                               windrow_error **error);

// Keeps the present state of all keyspaces readable.
int32_t windrow_snapshot_new(const windrow_database *database,
                             windrow_snapshot **snapshot,
                             windrow_error **error);

// The code of the error; `WINDROW_OK` for null.
int32_t windrow_error_code(const windrow_error *error);

// One sentence that names the fault. Valid until the error is freed; "" for null.
const char *windrow_error_message(const windrow_error *error);

// The name of the keyspace that a conflict, a deadlock or a lock that was not free is about; null for other errors.
// Valid until the error is freed.
const char *windrow_error_keyspace(const windrow_error *error);

// The key that a conflict, a deadlock or a lock that was not free is about; no bytes for other errors. Valid until the
// error is freed.
windrow_bytes windrow_error_key(const windrow_error *error);

// Frees an error. Null is allowed.
void windrow_error_free(windrow_error *error);

// The options of a preset.
int32_t windrow_keyspace_options_new(uint32_t preset,
                                     windrow_keyspace_options **options,
                                     windrow_error **error);

// Frees options. Null is allowed.
void windrow_keyspace_options_free(windrow_keyspace_options *options);

// Sets the option `name`, a field of Rust's `KeyspaceOptions`, to what `value` says, as `windrow_options_set` does. The names:
//
// - `memtable_bytes`, `base_bytes`, `file_bytes`, `block_bytes`, `level0_runs`: whole numbers. `medium_from`, `large_from`:
//   whole numbers, or `never`. `segment_limit`: a whole number, or `scaled`.
// - `size_ratio`, `scaling`, `bits_per_key`, `max_space_amp` (also `inf`): numbers. `default_ttl`: seconds.
// - `compression`: `none`, `lz4` or `zstd`. `filter_allocation`: `monkey` or `uniform`.
// - `medium_order`: `sorted`, or `written` for medium values in the order of the writes.
// - `medium_in_place`: `last`, `before-last` or `never`: the level in which compactions put medium values in place.
int32_t windrow_keyspace_options_set(windrow_keyspace_options *options,
                                     const char *name,
                                     const char *value,
                                     windrow_error **error);

// How long entries live that name no time of their own, in milliseconds from 1 to 2^47; 0, the default, for as long as
// nobody removes them. Entries that are there already keep their times.
void windrow_keyspace_options_set_default_ttl(windrow_keyspace_options *options,
                                              uint64_t milliseconds);

// Bytes of a memtable, from 4 KiB to 64 GiB. Default 64 MiB.
void windrow_keyspace_options_set_memtable_bytes(windrow_keyspace_options *options, size_t bytes);

// The size ratio of the last two levels, from 2 to 1000. Default 5.
void windrow_keyspace_options_set_size_ratio(windrow_keyspace_options *options, double ratio);

// By how much ratios grow towards the shallow levels: 1 divided by this, above 0 and at most 1. Default 0.8.
void windrow_keyspace_options_set_scaling(windrow_keyspace_options *options,
                                          double scaling);

// Capacity of level 1 while it is the only level, in bytes. Default 256 MiB.
void windrow_keyspace_options_set_base_bytes(windrow_keyspace_options *options, uint64_t bytes);

// The size at which a compaction closes a table file, in bytes, from 1 KiB to 64 GiB. Default 16 MiB.
void windrow_keyspace_options_set_file_bytes(windrow_keyspace_options *options,
                                             uint64_t bytes);

// The size of a data block, in bytes, from 128 to 1 MiB. Default 4 KiB.
void windrow_keyspace_options_set_block_bytes(windrow_keyspace_options *options, size_t bytes);

// Filter bits for each key, from 0 to 64. Default 10.
void windrow_keyspace_options_set_bits_per_key(windrow_keyspace_options *options, double bits);

// Whether all files have the same bits for each key; otherwise the files that save the most reads have more. Default
// false.
void windrow_keyspace_options_set_uniform_filters(windrow_keyspace_options *options,
                                                  bool value);

// The compression of blocks and values: one of `WINDROW_COMPRESSION_...`. Default none.
int32_t windrow_keyspace_options_set_compression(windrow_keyspace_options *options,
                                                 uint32_t compression,
                                                 windrow_error **error);

// Runs in level 0 before a compaction merges them into level 1, from 1 to 64. Default 4.
void windrow_keyspace_options_set_level0_runs(windrow_keyspace_options *options, size_t runs);

// The most segments of a table file, from 1 to 12; 0 for a limit by level, the default.
void windrow_keyspace_options_set_segment_limit(windrow_keyspace_options *options, size_t segments);

// The bound on bytes of files over bytes of live data, above 1.05, or infinity. Default 1.6.
void windrow_keyspace_options_set_max_space_amp(windrow_keyspace_options *options, double bound);

// From how many bytes on a value is medium, key and value together. Default 120; `UINT64_MAX` for never.
void windrow_keyspace_options_set_medium_from(windrow_keyspace_options *options,
                                              uint64_t bytes);

// From how many bytes on a value is large, key and value together. Default 1024; `UINT64_MAX` for never.
void windrow_keyspace_options_set_large_from(windrow_keyspace_options *options,
                                             uint64_t bytes);

// Whether compactions put medium values in place one level before the last. Default false: in the last level.
void windrow_keyspace_options_set_medium_in_place_early(windrow_keyspace_options *options,
                                                        bool value);

// Frees the handle of a keyspace. Null is allowed.
void windrow_keyspace_free(windrow_keyspace *keyspace);

// Gives the keyspace another name. All its handles go on.
int32_t windrow_keyspace_rename(const windrow_keyspace *keyspace,
                                const char *name,
                                windrow_error **error);

// The present name of the keyspace. Free it with `windrow_text_free`.
int32_t windrow_keyspace_name(const windrow_keyspace *keyspace, char **name, windrow_error **error);

// The options of the keyspace as a JSON object. Free it with `windrow_text_free`.
int32_t windrow_keyspace_options_json(const windrow_keyspace *keyspace,
                                      char **json,
                                      windrow_error **error);

// Sets the value of `key`. `durability` is one of `WINDROW_DURABILITY_...`, here and in all other writes.
int32_t windrow_put(const windrow_keyspace *keyspace,
                    windrow_bytes key,
                    windrow_bytes value,
                    uint32_t durability,
                    windrow_error **error);

// Sets the value of `key` for `ttl` milliseconds. From then on no read sees it, and a later compaction frees its space.
// `windrow_put` writes what stays, or stays as long as the keyspace's default says.
int32_t windrow_put_with_ttl(const windrow_keyspace *keyspace,
                             windrow_bytes key,
                             windrow_bytes value,
                             uint64_t ttl,
                             uint32_t durability,
                             windrow_error **error);

// Sets the value of `key` until `expires_at`, milliseconds since 1970 or `WINDROW_EXPIRY_NEVER`, whatever the default of the
// keyspace is: so an entry moves to another keyspace with its expiry. A time that is over is no error.
int32_t windrow_put_with_expiry(const windrow_keyspace *keyspace,
                                windrow_bytes key,
                                windrow_bytes value,
                                uint64_t expires_at,
                                uint32_t durability,
                                windrow_error **error);

// Removes `key`. The removal of a missing key is no error.
int32_t windrow_delete(const windrow_keyspace *keyspace,
                       windrow_bytes key,
                       uint32_t durability,
                       windrow_error **error);

// Removes all keys of a range, by one small write.
int32_t windrow_delete_range(const windrow_keyspace *keyspace,
                             windrow_range range,
                             uint32_t durability,
                             windrow_error **error);

// Writes an operand, which the keyspace's merge operator folds into the value of `key`.
int32_t windrow_merge(const windrow_keyspace *keyspace,
                      windrow_bytes key,
                      windrow_bytes operand,
                      uint32_t durability,
                      windrow_error **error);

// The value of `key` in the newest state, or in that of `snapshot` if it is not null. `*value` is null if the key does not
// exist, and that is no error. Free the value with `windrow_value_free`.
int32_t windrow_get(const windrow_keyspace *keyspace,
                    const windrow_snapshot *snapshot,
                    windrow_bytes key,
                    windrow_value **value,
                    windrow_error **error);

// Whether `key` exists in the newest state, or in that of `snapshot` if it is not null.
int32_t windrow_contains(const windrow_keyspace *keyspace,
                         const windrow_snapshot *snapshot,
                         windrow_bytes key,
                         bool *contains,
                         windrow_error **error);

// The values of `count` keys in one state: the newest one, or that of `snapshot` if it is not null. `values` points to space
// for as many handles. Each becomes null if its key does not exist, and all do after an error. It reads the keys of cold
// blocks at once, so it takes less time than as many gets. Free each value with `windrow_value_free`.
int32_t windrow_multi_get(const windrow_keyspace *keyspace,
                          const windrow_snapshot *snapshot,
                          const windrow_bytes *keys,
                          windrow_value **values,
                          size_t count,
                          windrow_error **error);

// When the value of `key` expires, in the newest state, or in that of `snapshot` if it is not null: a time in milliseconds
// since the start of 1970, `WINDROW_EXPIRY_NEVER`, or `WINDROW_EXPIRY_ABSENT` if the key does not exist.
int32_t windrow_expires_at(const windrow_keyspace *keyspace,
                           const windrow_snapshot *snapshot,
                           windrow_bytes key,
                           uint64_t *expiry,
                           windrow_error **error);

// Sets the value of `key` if it has none, in one step. `*was_absent` says whether it had none.
int32_t windrow_put_if_absent(const windrow_keyspace *keyspace,
                              windrow_bytes key,
                              windrow_bytes value,
                              bool *was_absent,
                              windrow_error **error);

// Removes `key` and returns its value, in one step: of several threads, one gets it. `*value` is null if the key did not
// exist. Free the value with `windrow_value_free`.
int32_t windrow_take(const windrow_keyspace *keyspace,
                     windrow_bytes key,
                     windrow_value **value,
                     windrow_error **error);

// Sets the value of `key` to `value` if it is `expected`, in one step. Bytes whose `data` is null stand for no value.
// `*was_expected` says whether it was.
int32_t windrow_compare_and_swap(const windrow_keyspace *keyspace,
                                 windrow_bytes key,
                                 windrow_bytes expected,
                                 windrow_bytes value,
                                 bool *was_expected,
                                 windrow_error **error);

// Flushes all memtables and compacts all entries of a range down to the deepest level that holds data.
int32_t windrow_compact_range(const windrow_keyspace *keyspace,
                              windrow_range range,
                              windrow_error **error);

// About how many keys are in a range, in microseconds.
int32_t windrow_approximate_count(const windrow_keyspace *keyspace,
                                  windrow_range range,
                                  uint64_t *count,
                                  windrow_error **error);

// About how many bytes of files hold the entries of a range.
int32_t windrow_approximate_bytes(const windrow_keyspace *keyspace,
                                  windrow_range range,
                                  uint64_t *bytes,
                                  windrow_error **error);

// Loads entries whose keys come in strictly ascending order, as one commit that is durable when this returns. `*count` is
// their number.
int32_t windrow_bulk_load(const windrow_keyspace *keyspace,
                          windrow_source source,
                          void *state,
                          uint64_t *count,
                          windrow_error **error);

// As `windrow_bulk_load`, for entries in any order: they are sorted on disk, with `memory` bytes of memory. Of entries with
// one key the last counts.
int32_t windrow_bulk_load_unsorted(const windrow_keyspace *keyspace,
                                   windrow_source source,
                                   void *state,
                                   size_t memory,
                                   uint64_t *count,
                                   windrow_error **error);

// Creates the table file `file`, which does not exist. Null options are the defaults; those of keyspaces count.
int32_t windrow_table_writer_create(const char *file,
                                    const windrow_options *options,
                                    windrow_table_writer **writer,
                                    windrow_error **error);

// Sets the value of `key`, which is above all keys so far. A value has at most 1 MiB.
int32_t windrow_table_writer_put(windrow_table_writer *writer,
                                 windrow_bytes key,
                                 windrow_bytes value,
                                 windrow_error **error);

// Removes `key`, which is above all keys so far, from the keyspace that takes the file.
int32_t windrow_table_writer_delete(windrow_table_writer *writer,
                                    windrow_bytes key,
                                    windrow_error **error);

// Completes the file and frees the writer, also after an error: then the file is removed. `*count` is the number of its
// entries.
int32_t windrow_table_writer_finish(windrow_table_writer *writer,
                                    uint64_t *count,
                                    windrow_error **error);

// Removes the file and frees the writer. Null is allowed.
void windrow_table_writer_free(windrow_table_writer *writer);

// Adds `count` table files, each to the keyspace at its position: all of them in one step, or none. It is durable when this
// returns. `*entries` is the number of their entries.
int32_t windrow_ingest(const windrow_database *database,
                       const windrow_keyspace *const *keyspaces,
                       const char *const *files,
                       size_t count,
                       uint64_t *entries,
                       windrow_error **error);

// Options with the defaults.
windrow_options *windrow_options_new(void);

// Frees options. Null is allowed.
void windrow_options_free(windrow_options *options);

// Sets the option `name`, a field of Rust's `Options`, to what `value` says: `true` or `false`, a number, seconds such as
// `0.5`, or a word. An unknown name is an error, and so is a value that the option cannot have. The names:
//
// - `create_if_missing`, `error_if_exists`, `log`: `true` or `false`. Without a log only `windrow_persist` makes writes
//   durable: the next open finds the database as it was at the last one.
// - `durability`: `buffered` or `sync`. `recovery`: `strict` or `up-to-damage`. `block_source`: `mapped` or `buffered`.
// - `lock_timeout`, `scrub_interval`, `change_retention_idle`, and, with 0 for never, `full_scrub_interval` and
//   `status_interval` for the file `STATUS`: seconds.
// - `memory_budget`, `cache_bytes`, `max_wal_bytes`, `reserve_bytes`, `change_retention_bytes`,
//   `compaction_bytes_per_second`, and `job_log_bytes` for the files `LOG` and `LOG.old`, 0 for none: bytes.
// - `background_threads`, `open_files_max`, and `latency_interval`: one of so many calls is timed, 0 for none.
int32_t windrow_options_set(windrow_options *options,
                            const char *name,
                            const char *value,
                            windrow_error **error);

// Whether an open creates a missing database. Default true.
void windrow_options_set_create_if_missing(windrow_options *options, bool value);

// Whether an open fails with `WINDROW_ALREADY_EXISTS` if the database exists. Default false.
void windrow_options_set_error_if_exists(windrow_options *options, bool value);

// Whether writes that name no durability survive a power failure. Default false: `WINDROW_DURABILITY_BUFFERED`.
void windrow_options_set_sync(windrow_options *options,
                              bool value);

// Whether an open goes on with the commits before damage of the write-ahead log, and gives up those behind it; otherwise it
// fails with `WINDROW_CORRUPTION`. Default false.
void windrow_options_set_up_to_damage(windrow_options *options,
                                      bool value);

// Whether reads take blocks from memory maps; otherwise by system calls into Windrow's own cache. Default true. A device
// error under a map can end the process.
void windrow_options_set_mapped(windrow_options *options,
                                bool value);

// How long a locking transaction waits for each lock, in milliseconds. Default 1000.
void windrow_options_set_lock_timeout(windrow_options *options, uint64_t milliseconds);

// Bytes of memory that the database may take. Default 512 MiB; 0 for no limit.
void windrow_options_set_memory_budget(windrow_options *options, uint64_t bytes);

// Bytes of Windrow's own block cache. Default 64 MiB.
void windrow_options_set_cache_bytes(windrow_options *options, uint64_t bytes);

// The bound on the bytes of the write-ahead log. Default 512 MiB.
void windrow_options_set_max_wal_bytes(windrow_options *options, uint64_t bytes);

// Threads for flushes and compactions, from 1 to 1024. Default 2.
void windrow_options_set_background_threads(windrow_options *options, size_t threads);

// The most open table files, from 16 to 2^24. Default 512.
void windrow_options_set_open_files_max(windrow_options *options, size_t files);

// The most bytes that compactions and garbage collections write in a second. Default 0, no limit.
void windrow_options_set_compaction_bytes_per_second(windrow_options *options, uint64_t bytes);

// Bytes of disk that are kept back for a full disk. Default 4 MiB.
void windrow_options_set_reserve_bytes(windrow_options *options, uint64_t bytes);

// Bytes on disk that each consumer of changes may hold; one that holds more falls behind. Default 1 GiB.
void windrow_options_set_change_retention_bytes(windrow_options *options,
                                                uint64_t bytes);

// How long a consumer of changes may hold a log without an acknowledgement, in milliseconds. Default a day.
void windrow_options_set_change_retention_idle(windrow_options *options,
                                               uint64_t milliseconds);

// How often a mapped block is verified again, in milliseconds. Default an hour.
void windrow_options_set_scrub_interval(windrow_options *options, uint64_t milliseconds);

// The options of keyspaces that are created without their own. They are copied.
void windrow_options_set_keyspace(windrow_options *options,
                                  const windrow_keyspace_options *keyspace);

// Gives a keyspace one of the ready merge operators, by its name:
//
// - `windrow.add_u64.wrapping`, `windrow.add_u64.saturating`, `windrow.add_i64.wrapping`, `windrow.add_i64.saturating`:
//   operands and values are numbers of 8 bytes, little-endian; the value is their sum.
// - `windrow.least`, `windrow.greatest`: the value is the least or greatest operand, by its bytes.
// - `windrow.append.2c`: the value is all operands, one after the other, with the bytes of these hexadecimal digits
//   between two of them; none for `windrow.append.`.
// - `windrow.id_set.8`: operands and values are sets of ids of this many bytes; the value has each id once, ascending.
//
// The database records the name, so that later opens need not give it.
int32_t windrow_options_set_merge_operator(windrow_options *options,
                                           const char *keyspace,
                                           const char *operator_,
                                           windrow_error **error);

// Checks every block and every value, and reports all damage: a JSON object with `files`, `segments`, `blocks`, `entries`,
// `unflushed_entries`, `bytes`, `values`, and `damage`, an array of objects with `code` and `error`. Free it with
// `windrow_text_free`.
int32_t windrow_verify_json(const windrow_database *database,
                            char **json,
                            windrow_error **error);

// Reads all bytes of all backups, and reports all damage: a JSON object with `backups`, their numbers, `pieces`, `bytes`, and
// `damage`, an array of objects with `backups`, `code` and `error`. Free it with `windrow_text_free`.
int32_t windrow_backups_verify_json(const windrow_backups *backups,
                                    char **json,
                                    windrow_error **error);

// Makes a new database in the folder `to`, which is empty or missing, of all that can be read in the folder `from`, which stays as
// it is and which nobody has open. The options say the merge operators of its keyspaces. The report is a JSON object with
// `manifest` ("whole", "part" or "missing"), `keyspaces`, an array of objects with `name` and `entries`, `tables`, `logs`,
// `losses`, an array of sentences, and `losses_left_off`. Free it with `windrow_text_free`.
int32_t windrow_repair(const char *from,
                       const char *to,
                       const windrow_options *options,
                       char **json,
                       windrow_error **error);

// How a get of `key` comes to its answer, in the newest state or in that of `snapshot`: a JSON object with `is_found`, the
// sources that it asks in order (`steps`), and how long the same get takes afterwards (`again_nanos`). Free it with
// `windrow_text_free`.
int32_t windrow_explain_get_json(const windrow_keyspace *keyspace,
                                 const windrow_snapshot *snapshot,
                                 windrow_bytes key,
                                 char **json,
                                 windrow_error **error);

// Opens the database in the folder `folder` for reading, also while a process has it open for writing. This process must be
// allowed to write to the folder, because a file there says what it reads. Null options are the defaults.
int32_t windrow_open_secondary(const char *folder,
                               const windrow_options *options,
                               windrow_secondary **secondary,
                               windrow_error **error);

// The newest state that was read, as a database that is open for reading. It does not change. Free it with
// `windrow_database_free`: `windrow_close` would close the state for all who have it.
int32_t windrow_secondary_database(const windrow_secondary *secondary,
                                   windrow_database **database,
                                   windrow_error **error);

// Reads what was committed since. `*database` is the newest state, as that of `windrow_secondary_database`. It has every
// commit that was acknowledged before this call. After `WINDROW_FELL_BEHIND` (this process was stopped for too long) the next
// call begins anew.
int32_t windrow_secondary_catch_up(const windrow_secondary *secondary,
                                   windrow_database **database,
                                   windrow_error **error);

// Catches up by itself after each `interval` milliseconds, on a thread, until the secondary is freed. What fails there is
// tried again. A second call changes the interval.
int32_t windrow_secondary_follow(const windrow_secondary *secondary,
                                 uint64_t interval,
                                 windrow_error **error);

// Frees the secondary. Its states stay open until they are freed. Null is allowed.
void windrow_secondary_free(windrow_secondary *secondary);

// Frees a snapshot. Null is allowed.
void windrow_snapshot_free(windrow_snapshot *snapshot);

// The sequence number of the newest write in the snapshot: its changes are those up to here. 0 for null.
uint64_t windrow_snapshot_sequence(const windrow_snapshot *snapshot);

// Begins a transaction without locks. `isolation` is one of `WINDROW_ISOLATION_...`.
int32_t windrow_transaction_begin(const windrow_database *database,
                                  uint32_t isolation,
                                  windrow_transaction **transaction,
                                  windrow_error **error);

// Begins a transaction that locks the keys that it writes or reads for an update. It waits for each lock at most for
// `timeout` milliseconds.
int32_t windrow_transaction_begin_locking(const windrow_database *database,
                                          uint64_t timeout,
                                          windrow_transaction **transaction,
                                          windrow_error **error);

// The value of `key` as the transaction sees it. `intent` is one of `WINDROW_READ_...`. `*value` is null if the key does not
// exist, and that is no error. Free the value with `windrow_value_free`.
int32_t windrow_transaction_get(windrow_transaction *transaction,
                                const windrow_keyspace *keyspace,
                                windrow_bytes key,
                                uint32_t intent,
                                windrow_value **value,
                                windrow_error **error);

// The values of `count` keys as the transaction sees them, as `windrow_multi_get` reads them. They are reads without an
// intent. Free each value with `windrow_value_free`.
int32_t windrow_transaction_multi_get(windrow_transaction *transaction,
                                      const windrow_keyspace *keyspace,
                                      const windrow_bytes *keys,
                                      windrow_value **values,
                                      size_t count,
                                      windrow_error **error);

// Sets the value of `key`. Nobody else sees it before the commit.
int32_t windrow_transaction_put(windrow_transaction *transaction,
                                const windrow_keyspace *keyspace,
                                windrow_bytes key,
                                windrow_bytes value,
                                windrow_error **error);

// Sets the value of `key` for `ttl` milliseconds from now on.
int32_t windrow_transaction_put_with_ttl(windrow_transaction *transaction,
                                         const windrow_keyspace *keyspace,
                                         windrow_bytes key,
                                         windrow_bytes value,
                                         uint64_t ttl,
                                         windrow_error **error);

// When the value of `key` expires, as the transaction sees it. `*expiry` is as that of `windrow_expires_at`.
int32_t windrow_transaction_expires_at(windrow_transaction *transaction,
                                       const windrow_keyspace *keyspace,
                                       windrow_bytes key,
                                       uint64_t *expiry,
                                       windrow_error **error);

// Removes `key`.
int32_t windrow_transaction_delete(windrow_transaction *transaction,
                                   const windrow_keyspace *keyspace,
                                   windrow_bytes key,
                                   windrow_error **error);

// Removes all keys of a range.
int32_t windrow_transaction_delete_range(windrow_transaction *transaction,
                                         const windrow_keyspace *keyspace,
                                         windrow_range range,
                                         windrow_error **error);

// Writes an operand, which the keyspace's merge operator folds into the value of `key`.
int32_t windrow_transaction_merge(windrow_transaction *transaction,
                                  const windrow_keyspace *keyspace,
                                  windrow_bytes key,
                                  windrow_bytes operand,
                                  windrow_error **error);

// Marks the present state of the writes and locks. `*savepoint` is a number above 0.
int32_t windrow_transaction_savepoint(windrow_transaction *transaction,
                                      size_t *savepoint,
                                      windrow_error **error);

// Discards what the transaction has written and locked since the savepoint, which stays.
int32_t windrow_transaction_roll_back_to(windrow_transaction *transaction,
                                         size_t savepoint,
                                         windrow_error **error);

// Commits the transaction and frees it, also after an error. Then nothing was written, unless the database was poisoned:
// after `WINDROW_POISONED`, or an error that has poisoned it, only the next open shows whether the writes are there. The
// calls of cursors that it still has return `WINDROW_CLOSED` from now on.
int32_t windrow_transaction_commit(windrow_transaction *transaction,
                                   uint32_t durability,
                                   windrow_error **error);

// Discards the writes of the transaction, and frees it. Its cursors return `WINDROW_CLOSED` from now on. Null is allowed.
void windrow_transaction_roll_back(windrow_transaction *transaction);

// Makes the transaction durable under the name `name` without its commit: the first phase of a commit in two phases. It
// frees the transaction, also after an error. Then nothing is prepared, unless the database was poisoned: see
// `windrow_transaction_commit`. A prepared transaction survives crashes until `windrow_commit_prepared` or
// `windrow_roll_back_prepared` ends it. Until then nobody else changes what it has read or written.
int32_t windrow_transaction_prepare(windrow_transaction *transaction,
                                    const char *name,
                                    windrow_error **error);

// The names of all prepared transactions as a JSON array. Free it with `windrow_text_free`.
int32_t windrow_prepared_names_json(const windrow_database *database,
                                    char **json,
                                    windrow_error **error);

// Commits the prepared transaction `name`. If nothing was written, it stays prepared.
int32_t windrow_commit_prepared(const windrow_database *database,
                                const char *name,
                                uint32_t durability,
                                windrow_error **error);

// Discards the writes of the prepared transaction `name`.
int32_t windrow_roll_back_prepared(const windrow_database *database,
                                   const char *name,
                                   uint32_t durability,
                                   windrow_error **error);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* WINDROW_H */
