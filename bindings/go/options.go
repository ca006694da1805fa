package windrow

/*
#include <stdlib.h>
#include "calls.h"
*/
import "C"

import (
	"maps"
	"math"
	"slices"
	"time"
	"unsafe"
)

// Options of a database. The zero value has the defaults. A field that is 0 has its default, too.
type Options struct {
	// ErrorIfMissing makes an open fail with [ErrNotFound] if the database does not exist; otherwise it is created.
	ErrorIfMissing bool
	// ErrorIfExists makes an open fail with [ErrAlreadyExists] if the database exists.
	ErrorIfExists bool
	// Sync makes writes that name no durability survive a power failure.
	Sync bool
	// UpToDamage makes an open go on with the commits before damage of the write-ahead log, and gives up those behind it.
	UpToDamage bool
	// Unmapped makes reads take blocks by system calls into Windrow's own cache, and not from memory maps. A device error
	// under a map can end the process.
	Unmapped bool
	// LockTimeout is how long a locking transaction waits for each lock. Default 1 second; negative: not at all.
	LockTimeout time.Duration
	// MemoryBudget is the memory that the database may take, in bytes. Default 512 MiB; negative: no limit.
	MemoryBudget int64
	// CacheBytes is the size of Windrow's own block cache. Default 64 MiB; negative: none.
	CacheBytes int64
	// MaxWALBytes is the bound on the bytes of the write-ahead log. Default 512 MiB.
	MaxWALBytes int64
	// BackgroundThreads run flushes and compactions, from 1 to 1024. Default 2.
	BackgroundThreads int
	// MaxOpenFiles is the most open table files, from 16 to 2^24. Default 512.
	MaxOpenFiles int
	// CompactionBytesPerSecond is the most that compactions and garbage collections write. Default no limit.
	CompactionBytesPerSecond int64
	// ReserveBytes of disk are kept back for a full disk. Default 4 MiB; negative: none.
	ReserveBytes int64
	// ChangeRetentionBytes on disk are the most that each consumer of changes may hold. Default 1 GiB; negative: none.
	ChangeRetentionBytes int64
	// ChangeRetentionIdle is how long a consumer may hold a log without an acknowledgement. Default a day.
	ChangeRetentionIdle time.Duration
	// ScrubInterval is how often a mapped block is verified again. Default an hour.
	ScrubInterval time.Duration
	// Keyspace has the options of keyspaces that are created without their own.
	Keyspace *KeyspaceOptions
	// MergeOperators has the operator of each keyspace with one. The database records its name, so later opens need not
	// give a ready one.
	MergeOperators map[string]MergeOperator
	// CompactionFilters has the filter of each keyspace with one.
	CompactionFilters map[string]CompactionFilter
	// Listener is called with the events of the database, in a goroutine of its own: one after the other, a little later,
	// and the last ones perhaps after the close. It may use the database.
	Listener func(Event)
}

// Preset names options of keyspaces that belong together.
type Preset uint32

const (
	// Balanced is for most loads.
	Balanced Preset = C.WINDROW_PRESET_BALANCED
	// Leveling is plain leveled compaction.
	Leveling Preset = C.WINDROW_PRESET_LEVELING
	// Autumn has the Autumn paper's levels alone.
	Autumn Preset = C.WINDROW_PRESET_AUTUMN
	// Parallax has the Parallax paper's placement of values alone.
	Parallax Preset = C.WINDROW_PRESET_PARALLAX
	// LSMA has the LSMA paper's append merges alone.
	LSMA Preset = C.WINDROW_PRESET_LSMA
)

// Compression of blocks and values.
type Compression uint32

const (
	// NoCompression is the default.
	NoCompression Compression = C.WINDROW_COMPRESSION_NONE
	// LZ4 is fast.
	LZ4 Compression = C.WINDROW_COMPRESSION_LZ4
	// Zstandard is smaller and slower. Not every build has it.
	Zstandard Compression = C.WINDROW_COMPRESSION_ZSTD
)

// KeyspaceOptions of one keyspace. The zero value has the defaults of [Balanced]. A field that is 0 has the default of the
// preset.
type KeyspaceOptions struct {
	Preset Preset
	// DefaultTTL is how long entries live that name no time of their own. Default for as long as nobody removes them.
	// Entries that are there already keep their times.
	DefaultTTL time.Duration
	// MemtableBytes is from 4 KiB to 64 GiB. Default 64 MiB.
	MemtableBytes int
	// SizeRatio of the last two levels, from 2 to 1000. Default 5.
	SizeRatio float64
	// Scaling is by how much ratios grow towards the shallow levels: 1 divided by this, at most 1. Default 0.8.
	Scaling float64
	// BaseBytes is the capacity of level 1 while it is the only level. Default 256 MiB.
	BaseBytes int64
	// FileBytes is the size at which a compaction closes a table file, from 1 KiB to 64 GiB. Default 16 MiB.
	FileBytes int64
	// BlockBytes is the size of a data block, from 128 to 1 MiB. Default 4 KiB.
	BlockBytes int
	// BitsPerKey of filters, up to 64. Default 10; negative: no filters.
	BitsPerKey float64
	// UniformFilters gives all files the same bits for each key; otherwise the files that save the most reads have more.
	UniformFilters bool
	Compression    Compression
	// Level0Runs is the number of runs in level 0 before a compaction merges them, from 1 to 64. Default 4.
	Level0Runs int
	// SegmentLimit is the most segments of a table file, up to 12. Default a limit by level.
	SegmentLimit int
	// MaxSpaceAmp is the bound on bytes of files over bytes of live data, above 1.05, or infinity. Default 1.6.
	MaxSpaceAmp float64
	// MediumFrom is from how many bytes on an entry is medium. Default 120; negative: never.
	MediumFrom int64
	// LargeFrom is from how many bytes on an entry is large, so that its value is stored apart. Default 1024; negative:
	// never.
	LargeFrom int64
	// MediumInPlaceEarly makes compactions put medium values in place one level before the last.
	MediumInPlaceEarly bool
}

// orNone is the number for C of a field of which negative stands for none.
func orNone(number int64) C.uint64_t {
	if number < 0 {
		return 0
	}
	return C.uint64_t(number)
}

// number checks a field that cannot be negative.
func number[N int | int64](name string, number N, fault *error) N {
	if number < 0 && *fault == nil {
		*fault = invalid("%s is %d", name, number)
	}
	return number
}

// milliseconds rounds up, so that a short wait is not none. A negative duration is none.
func milliseconds(duration time.Duration) C.uint64_t {
	whole := duration.Milliseconds()
	if duration%time.Millisecond > 0 {
		whole++
	}
	return C.uint64_t(max(0, whole))
}

// build makes the options for C. The caller frees them.
func (options *Options) build() (*C.windrow_options, error) {
	made := C.windrow_options_new()
	if options == nil {
		return made, nil
	}
	var fault error
	C.windrow_options_set_create_if_missing(made, C.bool(!options.ErrorIfMissing))
	C.windrow_options_set_error_if_exists(made, C.bool(options.ErrorIfExists))
	C.windrow_options_set_sync(made, C.bool(options.Sync))
	C.windrow_options_set_up_to_damage(made, C.bool(options.UpToDamage))
	C.windrow_options_set_mapped(made, C.bool(!options.Unmapped))
	if options.LockTimeout != 0 {
		C.windrow_options_set_lock_timeout(made, milliseconds(options.LockTimeout))
	}
	if options.MemoryBudget != 0 {
		C.windrow_options_set_memory_budget(made, orNone(options.MemoryBudget))
	}
	if options.CacheBytes != 0 {
		C.windrow_options_set_cache_bytes(made, orNone(options.CacheBytes))
	}
	if options.MaxWALBytes != 0 {
		C.windrow_options_set_max_wal_bytes(made, C.uint64_t(number("MaxWALBytes", options.MaxWALBytes, &fault)))
	}
	if options.BackgroundThreads != 0 {
		C.windrow_options_set_background_threads(made,
			C.size_t(number("BackgroundThreads", options.BackgroundThreads, &fault)))
	}
	if options.MaxOpenFiles != 0 {
		C.windrow_options_set_open_files_max(made, C.size_t(number("MaxOpenFiles", options.MaxOpenFiles, &fault)))
	}
	if options.CompactionBytesPerSecond != 0 {
		C.windrow_options_set_compaction_bytes_per_second(made,
			C.uint64_t(number("CompactionBytesPerSecond", options.CompactionBytesPerSecond, &fault)))
	}
	if options.ReserveBytes != 0 {
		C.windrow_options_set_reserve_bytes(made, orNone(options.ReserveBytes))
	}
	if options.ChangeRetentionBytes != 0 {
		C.windrow_options_set_change_retention_bytes(made, orNone(options.ChangeRetentionBytes))
	}
	if options.ChangeRetentionIdle != 0 {
		number("ChangeRetentionIdle", int64(options.ChangeRetentionIdle), &fault)
		C.windrow_options_set_change_retention_idle(made, milliseconds(options.ChangeRetentionIdle))
	}
	if options.ScrubInterval != 0 {
		number("ScrubInterval", int64(options.ScrubInterval), &fault)
		C.windrow_options_set_scrub_interval(made, milliseconds(options.ScrubInterval))
	}
	if options.Keyspace != nil && fault == nil {
		var keyspace *C.windrow_keyspace_options
		if keyspace, fault = options.Keyspace.build(); fault == nil {
			C.windrow_options_set_keyspace(made, keyspace)
			C.windrow_keyspace_options_free(keyspace)
		}
	}
	for _, keyspace := range slices.Sorted(maps.Keys(options.MergeOperators)) {
		if fault == nil {
			fault = options.MergeOperators[keyspace].set(made, keyspace)
		}
	}
	for _, keyspace := range slices.Sorted(maps.Keys(options.CompactionFilters)) {
		if fault == nil {
			fault = options.CompactionFilters[keyspace].set(made, keyspace)
		}
	}
	if options.Listener != nil && fault == nil {
		fault = listen(made, options.Listener)
	}
	if fault != nil {
		C.windrow_options_free(made)
		return nil, fault
	}
	return made, nil
}

// build makes the options for C. The caller frees them.
func (options *KeyspaceOptions) build() (*C.windrow_keyspace_options, error) {
	var preset Preset
	if options != nil {
		preset = options.Preset
	}
	var made *C.windrow_keyspace_options
	var failed *C.windrow_error
	C.windrow_keyspace_options_new(C.uint32_t(preset), &made, &failed)
	fault := failure(failed)
	if options == nil || fault != nil {
		return made, fault
	}
	if options.DefaultTTL != 0 {
		number("DefaultTTL", int64(options.DefaultTTL), &fault)
		C.windrow_keyspace_options_set_default_ttl(made, milliseconds(options.DefaultTTL))
	}
	if options.MemtableBytes != 0 {
		C.windrow_keyspace_options_set_memtable_bytes(made,
			C.size_t(number("MemtableBytes", options.MemtableBytes, &fault)))
	}
	if options.SizeRatio != 0 {
		C.windrow_keyspace_options_set_size_ratio(made, C.double(options.SizeRatio))
	}
	if options.Scaling != 0 {
		C.windrow_keyspace_options_set_scaling(made, C.double(options.Scaling))
	}
	if options.BaseBytes != 0 {
		C.windrow_keyspace_options_set_base_bytes(made, C.uint64_t(number("BaseBytes", options.BaseBytes, &fault)))
	}
	if options.FileBytes != 0 {
		C.windrow_keyspace_options_set_file_bytes(made, C.uint64_t(number("FileBytes", options.FileBytes, &fault)))
	}
	if options.BlockBytes != 0 {
		C.windrow_keyspace_options_set_block_bytes(made, C.size_t(number("BlockBytes", options.BlockBytes, &fault)))
	}
	if options.BitsPerKey != 0 {
		C.windrow_keyspace_options_set_bits_per_key(made, C.double(max(0, options.BitsPerKey)))
	}
	if options.UniformFilters {
		C.windrow_keyspace_options_set_uniform_filters(made, true)
	}
	if options.Compression != NoCompression {
		C.windrow_keyspace_options_set_compression(made, C.uint32_t(options.Compression), &failed)
		if err := failure(failed); fault == nil {
			fault = err
		}
	}
	if options.Level0Runs != 0 {
		C.windrow_keyspace_options_set_level0_runs(made, C.size_t(number("Level0Runs", options.Level0Runs, &fault)))
	}
	if options.SegmentLimit != 0 {
		C.windrow_keyspace_options_set_segment_limit(made,
			C.size_t(number("SegmentLimit", options.SegmentLimit, &fault)))
	}
	if options.MaxSpaceAmp != 0 {
		C.windrow_keyspace_options_set_max_space_amp(made, C.double(options.MaxSpaceAmp))
	}
	if options.MediumFrom != 0 {
		C.windrow_keyspace_options_set_medium_from(made, never(options.MediumFrom))
	}
	if options.LargeFrom != 0 {
		C.windrow_keyspace_options_set_large_from(made, never(options.LargeFrom))
	}
	if options.MediumInPlaceEarly {
		C.windrow_keyspace_options_set_medium_in_place_early(made, true)
	}
	if fault != nil {
		C.windrow_keyspace_options_free(made)
		return nil, fault
	}
	return made, nil
}

func never(from int64) C.uint64_t {
	if from < 0 {
		return math.MaxUint64
	}
	return C.uint64_t(from)
}

// withText runs a call with a text for C, which has a zero at its end and none inside.
func withText(text string, call func(text *C.char, failed **C.windrow_error)) error {
	return withTexts(text, "", func(first, _ *C.char, failed **C.windrow_error) { call(first, failed) })
}

func withTexts(first, second string, call func(first, second *C.char, failed **C.windrow_error)) error {
	for _, text := range []string{first, second} {
		for _, character := range []byte(text) {
			if character == 0 {
				return invalid("%q has a null byte", text)
			}
		}
	}
	texts := [2]*C.char{C.CString(first), C.CString(second)}
	defer C.free(unsafe.Pointer(texts[0]))
	defer C.free(unsafe.Pointer(texts[1]))
	var failed *C.windrow_error
	call(texts[0], texts[1], &failed)
	return failure(failed)
}
