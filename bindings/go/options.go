package windrow

/*
#include <stdlib.h>
#include "calls.h"
*/
import "C"

import (
	"maps"
	"slices"
	"strconv"
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
	// FullScrubInterval is the time in which background work checks all files once. Default 30 days; negative: never.
	FullScrubInterval time.Duration
	// NoLog keeps no log: writes cost less, and only [DB.Persist] makes them durable. Whatever ends the process, even a
	// close, the next open finds the database as it was at the last one.
	NoLog bool
	// JobLogBytes of the files LOG and LOG.old, with a line for each event. Default 2 MiB; negative: none.
	JobLogBytes int64
	// StatusInterval is how often the file STATUS gets the statistics. Default a second; negative: never.
	StatusInterval time.Duration
	// LatencyInterval: one of so many calls is timed. Default 128; negative: none.
	LatencyInterval int
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
	// MediumNeverInPlace makes compactions leave medium values apart.
	MediumNeverInPlace bool
	// MediumAsWritten stores medium values in the order of the writes, and not of the keys.
	MediumAsWritten bool
}

// settings are options by their names in Windrow, with their values as texts: see windrow_options_set. A field that is 0 is
// not among them.
type settings [][2]string

func (settings *settings) set(name, value string) {
	*settings = append(*settings, [2]string{name, value})
}

// word sets the option if the field is not the default.
func (settings *settings) word(name string, isSet bool, word string) {
	if isSet {
		settings.set(name, word)
	}
}

func (settings *settings) number(name string, number int64) {
	if number != 0 {
		settings.set(name, strconv.FormatInt(number, 10))
	}
}

// orElse sets a number of which negative stands for a word.
func (settings *settings) orElse(name string, number int64, negative string) {
	if number < 0 {
		settings.set(name, negative)
	} else {
		settings.number(name, number)
	}
}

func (settings *settings) real(name string, number float64) {
	if number != 0 {
		settings.set(name, strconv.FormatFloat(number, 'g', -1, 64))
	}
}

// duration sets seconds.
func (settings *settings) duration(name string, duration time.Duration) {
	settings.real(name, duration.Seconds())
}

// durationOr sets seconds, of which negative stands for a word.
func (settings *settings) durationOr(name string, duration time.Duration, negative string) {
	settings.word(name, duration < 0, negative)
	settings.duration(name, max(0, duration))
}

// pass makes the calls that set them.
func (settings settings) pass(set func(name, value *C.char, failed **C.windrow_error)) error {
	for _, one := range settings {
		if err := withTexts(one[0], one[1], set); err != nil {
			return err
		}
	}
	return nil
}

// settings are all fields that are no objects.
func (options *Options) settings() (set settings) {
	set.word("create_if_missing", options.ErrorIfMissing, "false")
	set.word("error_if_exists", options.ErrorIfExists, "true")
	set.word("durability", options.Sync, "sync")
	set.word("log", options.NoLog, "false")
	set.word("recovery", options.UpToDamage, "up-to-damage")
	set.word("block_source", options.Unmapped, "buffered")
	set.durationOr("lock_timeout", options.LockTimeout, "0")
	set.orElse("memory_budget", options.MemoryBudget, "0")
	set.orElse("cache_bytes", options.CacheBytes, "0")
	set.number("max_wal_bytes", options.MaxWALBytes)
	set.number("background_threads", int64(options.BackgroundThreads))
	set.number("open_files_max", int64(options.MaxOpenFiles))
	set.number("compaction_bytes_per_second", options.CompactionBytesPerSecond)
	set.orElse("reserve_bytes", options.ReserveBytes, "0")
	set.orElse("change_retention_bytes", options.ChangeRetentionBytes, "0")
	set.duration("change_retention_idle", options.ChangeRetentionIdle)
	set.duration("scrub_interval", options.ScrubInterval)
	set.durationOr("full_scrub_interval", options.FullScrubInterval, "0")
	set.orElse("job_log_bytes", options.JobLogBytes, "0")
	set.durationOr("status_interval", options.StatusInterval, "0")
	set.orElse("latency_interval", int64(options.LatencyInterval), "0")
	return set
}

// settings are all fields but the preset.
func (options *KeyspaceOptions) settings() (set settings) {
	set.duration("default_ttl", options.DefaultTTL)
	set.number("memtable_bytes", int64(options.MemtableBytes))
	set.real("size_ratio", options.SizeRatio)
	set.real("scaling", options.Scaling)
	set.number("base_bytes", options.BaseBytes)
	set.number("file_bytes", options.FileBytes)
	set.number("block_bytes", int64(options.BlockBytes))
	set.real("bits_per_key", max(0, options.BitsPerKey))
	set.word("bits_per_key", options.BitsPerKey < 0, "0")
	set.word("filter_allocation", options.UniformFilters, "uniform")
	set.word("compression", options.Compression == LZ4, "lz4")
	set.word("compression", options.Compression == Zstandard, "zstd")
	set.number("level0_runs", int64(options.Level0Runs))
	set.number("segment_limit", int64(options.SegmentLimit))
	set.real("max_space_amp", options.MaxSpaceAmp)
	set.orElse("medium_from", options.MediumFrom, "never")
	set.orElse("large_from", options.LargeFrom, "never")
	set.word("medium_in_place", options.MediumInPlaceEarly, "before-last")
	set.word("medium_in_place", options.MediumNeverInPlace, "never")
	set.word("medium_order", options.MediumAsWritten, "written")
	return set
}

// timeToLive is a time to live for C, which has no negative ones.
func timeToLive(ttl time.Duration) (C.uint64_t, error) {
	if ttl < 0 {
		return 0, invalid("the time to live is negative: %v", ttl)
	}
	return milliseconds(ttl), nil
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
	fault := options.settings().pass(func(name, value *C.char, failed **C.windrow_error) {
		C.windrow_options_set(made, name, value, failed)
	})
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
	if options == nil {
		options = &KeyspaceOptions{}
	}
	var made *C.windrow_keyspace_options
	var failed *C.windrow_error
	C.windrow_keyspace_options_new(C.uint32_t(options.Preset), &made, &failed)
	fault := failure(failed)
	if fault == nil && options.Compression > Zstandard {
		fault = invalid("%d is no compression", options.Compression)
	}
	if fault == nil {
		fault = options.settings().pass(func(name, value *C.char, failed **C.windrow_error) {
			C.windrow_keyspace_options_set(made, name, value, failed)
		})
	}
	if fault != nil {
		C.windrow_keyspace_options_free(made)
		return nil, fault
	}
	return made, nil
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
