//! The options of a keyspace. docs/tuning.md says when to change them.

use std::ffi::c_char;
use std::mem::MaybeUninit;
use std::time::Duration;

use windrow::{
    Compression, Error as WindrowError, FilterAllocation, MediumInPlace, Preset, SegmentLimit,
};
use windrow_ffi::handles::{check, give, take};
use windrow_ffi::settings::{self, Setting};
use windrow_ffi::{given, text};

use super::calls::{call, call_for, guard};
use super::errors::Error;

/// Options of a keyspace. One thread at a time uses them. Whoever is given them copies them.
///
/// A setter stores a value. The open of the keyspace checks all of them and names each fault. A setter ignores null.
/// `windrow_keyspace_options_set` has all options, also those without a setter of their own.
#[derive(Debug)]
pub struct KeyspaceOptions(pub(super) windrow::KeyspaceOptions);

/// For most loads.
pub const WINDROW_PRESET_BALANCED: u32 = 0;
/// Plain leveled compaction.
pub const WINDROW_PRESET_LEVELING: u32 = 1;
/// The Autumn paper's levels alone.
pub const WINDROW_PRESET_AUTUMN: u32 = 2;
/// The Parallax paper's placement of values alone.
pub const WINDROW_PRESET_PARALLAX: u32 = 3;
/// The LSMA paper's append merges alone.
pub const WINDROW_PRESET_LSMA: u32 = 4;

/// No compression.
pub const WINDROW_COMPRESSION_NONE: u32 = 0;
/// LZ4: fast.
pub const WINDROW_COMPRESSION_LZ4: u32 = 1;
/// Zstandard: smaller and slower; not in every build.
pub const WINDROW_COMPRESSION_ZSTD: u32 = 2;

/// The options of a preset.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_keyspace_options_new(
    preset: u32,
    options: Option<&mut MaybeUninit<Option<Box<KeyspaceOptions>>>>,
    error: Option<&mut MaybeUninit<Option<Box<Error>>>>,
) -> i32 {
    call_for(options, None, error, || {
        let preset = match preset {
            WINDROW_PRESET_BALANCED => Preset::Balanced,
            WINDROW_PRESET_LEVELING => Preset::Leveling,
            WINDROW_PRESET_AUTUMN => Preset::Autumn,
            WINDROW_PRESET_PARALLAX => Preset::Parallax,
            WINDROW_PRESET_LSMA => Preset::Lsma,
            unknown => {
                let message = format!("{unknown} is no preset");
                return Err(WindrowError::invalid_argument(message));
            }
        };
        let options = windrow::KeyspaceOptions::preset(preset);
        Ok(Some(give(KeyspaceOptions(options))))
    })
}

/// Frees options. Null is allowed.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_keyspace_options_free(options: Option<Box<KeyspaceOptions>>) {
    guard((), || drop(take(options)));
}

fn set(options: Option<&mut KeyspaceOptions>, set: impl FnOnce(&mut windrow::KeyspaceOptions)) {
    guard((), || {
        if let Some(options) = check(options) {
            set(&mut options.0);
        }
    });
}

/// Sets the option `name`, a field of Rust's `KeyspaceOptions`, to what `value` says, as `windrow_options_set` does. The names:
///
/// - `memtable_bytes`, `base_bytes`, `file_bytes`, `block_bytes`, `level0_runs`: whole numbers. `medium_from`, `large_from`:
///   whole numbers, or `never`. `segment_limit`: a whole number, or `scaled`.
/// - `size_ratio`, `scaling`, `bits_per_key`, `max_space_amp` (also `inf`): numbers. `default_ttl`: seconds.
/// - `compression`: `none`, `lz4` or `zstd`. `filter_allocation`: `monkey` or `uniform`.
/// - `medium_order`: `sorted`, or `written` for medium values in the order of the writes.
/// - `medium_in_place`: `last`, `before-last` or `never`: the level in which compactions put medium values in place.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn windrow_keyspace_options_set(
    options: Option<&mut KeyspaceOptions>,
    name: *const c_char,
    value: *const c_char,
    error: Option<&mut MaybeUninit<Option<Box<Error>>>>,
) -> i32 {
    call(error, || {
        let options = given(options, "options")?;
        // SAFETY: the caller promises text.
        let name = unsafe { text(name, "name of the option")? };
        // SAFETY: the same.
        let value = unsafe { text(value, "value of the option")? };
        settings::set_of_keyspace(&mut options.0, name, Setting::of_text(value))
    })
}

/// How long entries live that name no time of their own, in milliseconds from 1 to 2^47; 0, the default, for as long as
/// nobody removes them. Entries that are there already keep their times.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_keyspace_options_set_default_ttl(
    options: Option<&mut KeyspaceOptions>,
    milliseconds: u64,
) {
    let ttl = (milliseconds > 0).then(|| Duration::from_millis(milliseconds));
    set(options, |options| options.default_ttl = ttl);
}

/// Bytes of a memtable, from 4 KiB to 64 GiB. Default 64 MiB.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_keyspace_options_set_memtable_bytes(
    options: Option<&mut KeyspaceOptions>,
    bytes: usize,
) {
    set(options, |options| options.memtable_bytes = bytes);
}

/// The size ratio of the last two levels, from 2 to 1000. Default 5.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_keyspace_options_set_size_ratio(
    options: Option<&mut KeyspaceOptions>,
    ratio: f64,
) {
    set(options, |options| options.size_ratio = ratio);
}

/// By how much ratios grow towards the shallow levels: 1 divided by this, above 0 and at most 1. Default 0.8.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_keyspace_options_set_scaling(
    options: Option<&mut KeyspaceOptions>,
    scaling: f64,
) {
    set(options, |options| options.scaling = scaling);
}

/// Capacity of level 1 while it is the only level, in bytes. Default 256 MiB.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_keyspace_options_set_base_bytes(
    options: Option<&mut KeyspaceOptions>,
    bytes: u64,
) {
    set(options, |options| options.base_bytes = bytes);
}

/// The size at which a compaction closes a table file, in bytes, from 1 KiB to 64 GiB. Default 16 MiB.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_keyspace_options_set_file_bytes(
    options: Option<&mut KeyspaceOptions>,
    bytes: u64,
) {
    set(options, |options| options.file_bytes = bytes);
}

/// The size of a data block, in bytes, from 128 to 1 MiB. Default 4 KiB.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_keyspace_options_set_block_bytes(
    options: Option<&mut KeyspaceOptions>,
    bytes: usize,
) {
    set(options, |options| options.block_bytes = bytes);
}

/// Filter bits for each key, from 0 to 64. Default 10.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_keyspace_options_set_bits_per_key(
    options: Option<&mut KeyspaceOptions>,
    bits: f64,
) {
    set(options, |options| options.bits_per_key = bits);
}

/// Whether all files have the same bits for each key; otherwise the files that save the most reads have more. Default
/// false.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_keyspace_options_set_uniform_filters(
    options: Option<&mut KeyspaceOptions>,
    value: bool,
) {
    let allocation = if value {
        FilterAllocation::Uniform
    } else {
        FilterAllocation::Monkey
    };
    set(options, |options| options.filter_allocation = allocation);
}

/// The compression of blocks and values: one of `WINDROW_COMPRESSION_...`. Default none.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_keyspace_options_set_compression(
    options: Option<&mut KeyspaceOptions>,
    compression: u32,
    error: Option<&mut MaybeUninit<Option<Box<Error>>>>,
) -> i32 {
    call(error, || {
        let compression = match compression {
            WINDROW_COMPRESSION_NONE => Compression::None,
            WINDROW_COMPRESSION_LZ4 => Compression::Lz4,
            WINDROW_COMPRESSION_ZSTD => Compression::Zstd,
            unknown => {
                let message = format!("{unknown} is no compression");
                return Err(WindrowError::invalid_argument(message));
            }
        };
        given(options, "options")?.0.compression = compression;
        Ok(())
    })
}

/// Runs in level 0 before a compaction merges them into level 1, from 1 to 64. Default 4.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_keyspace_options_set_level0_runs(
    options: Option<&mut KeyspaceOptions>,
    runs: usize,
) {
    set(options, |options| options.level0_runs = runs);
}

/// The most segments of a table file, from 1 to 12; 0 for a limit by level, the default.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_keyspace_options_set_segment_limit(
    options: Option<&mut KeyspaceOptions>,
    segments: usize,
) {
    let limit = if segments == 0 {
        SegmentLimit::Scaled
    } else {
        SegmentLimit::Fixed(segments)
    };
    set(options, |options| options.segment_limit = limit);
}

/// The bound on bytes of files over bytes of live data, above 1.05, or infinity. Default 1.6.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_keyspace_options_set_max_space_amp(
    options: Option<&mut KeyspaceOptions>,
    bound: f64,
) {
    set(options, |options| options.max_space_amp = bound);
}

/// From how many bytes on a value is medium, key and value together. Default 120; `UINT64_MAX` for never.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_keyspace_options_set_medium_from(
    options: Option<&mut KeyspaceOptions>,
    bytes: u64,
) {
    set(options, |options| options.medium_from = bytes);
}

/// From how many bytes on a value is large, key and value together. Default 1024; `UINT64_MAX` for never.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_keyspace_options_set_large_from(
    options: Option<&mut KeyspaceOptions>,
    bytes: u64,
) {
    set(options, |options| options.large_from = bytes);
}

/// Whether compactions put medium values in place one level before the last. Default false: in the last level.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_keyspace_options_set_medium_in_place_early(
    options: Option<&mut KeyspaceOptions>,
    value: bool,
) {
    let level = if value {
        MediumInPlace::LevelBeforeLast
    } else {
        MediumInPlace::LastLevel
    };
    set(options, |options| options.medium_in_place = level);
}
