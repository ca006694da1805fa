//! The options of a database. docs/tuning.md says when to change them.

use std::ffi::c_char;
use std::sync::Arc;
use std::time::Duration;

use windrow::{BlockSource, Durability, Error as WindrowError, Recovery, Result, operators};
use windrow_ffi::handles::{check, give, take};
use windrow_ffi::settings::{self, Setting};
use windrow_ffi::{given, text};

use super::calls::{call, guard};
use super::errors::Error;
use super::keyspace_options::KeyspaceOptions;
use std::mem::MaybeUninit;

/// Options of a database. One thread at a time uses them. An open copies them.
///
/// A setter stores a value. The open checks all of them and names each fault. A setter ignores null. `windrow_options_set` has
/// all options, also those without a setter of their own.
#[derive(Debug)]
pub struct Options(pub(super) windrow::Options);

impl Options {
    /// The options that a caller passes; the defaults for null.
    pub(super) fn given(options: Option<&Self>) -> windrow::Options {
        check(options).map_or_else(windrow::Options::default, |options| options.0.clone())
    }
}

/// The durability that the options of the database name.
pub const WINDROW_DURABILITY_DEFAULT: u32 = 0;
/// Writes survive the end of the process, but not a power failure.
pub const WINDROW_DURABILITY_BUFFERED: u32 = 1;
/// Writes survive a power failure: the log is synced before the call returns.
pub const WINDROW_DURABILITY_SYNC: u32 = 2;

/// The durability that a caller names, beside that of the database.
pub(super) fn durability(named: u32, default: Durability) -> Result<Durability> {
    match named {
        WINDROW_DURABILITY_DEFAULT => Ok(default),
        WINDROW_DURABILITY_BUFFERED => Ok(Durability::Buffered),
        WINDROW_DURABILITY_SYNC => Ok(Durability::Sync),
        unknown => Err(WindrowError::invalid_argument(format!(
            "{unknown} is no durability"
        ))),
    }
}

/// Options with the defaults.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_options_new() -> Box<Options> {
    give(Options(windrow::Options::default()))
}

/// Frees options. Null is allowed.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_options_free(options: Option<Box<Options>>) {
    guard((), || drop(take(options)));
}

fn set(options: Option<&mut Options>, set: impl FnOnce(&mut windrow::Options)) {
    guard((), || {
        if let Some(options) = check(options) {
            set(&mut options.0);
        }
    });
}

/// Sets the option `name`, a field of Rust's `Options`, to what `value` says: `true` or `false`, a number, seconds such as
/// `0.5`, or a word. An unknown name is an error, and so is a value that the option cannot have. The names:
///
/// - `create_if_missing`, `error_if_exists`, `log`: `true` or `false`. Without a log only `windrow_persist` makes writes
///   durable: the next open finds the database as it was at the last one.
/// - `durability`: `buffered` or `sync`. `recovery`: `strict` or `up-to-damage`. `block_source`: `mapped` or `buffered`.
/// - `lock_timeout`, `scrub_interval`, `change_retention_idle`, and, with 0 for never, `full_scrub_interval` and
///   `status_interval` for the file `STATUS`: seconds.
/// - `memory_budget`, `cache_bytes`, `max_wal_bytes`, `reserve_bytes`, `change_retention_bytes`,
///   `compaction_bytes_per_second`, and `job_log_bytes` for the files `LOG` and `LOG.old`, 0 for none: bytes.
/// - `background_threads`, `open_files_max`, and `latency_interval`: one of so many calls is timed, 0 for none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn windrow_options_set(
    options: Option<&mut Options>,
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
        settings::set(&mut options.0, name, Setting::of_text(value))
    })
}

/// Whether an open creates a missing database. Default true.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_options_set_create_if_missing(
    options: Option<&mut Options>,
    value: bool,
) {
    set(options, |options| options.create_if_missing = value);
}

/// Whether an open fails with `WINDROW_ALREADY_EXISTS` if the database exists. Default false.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_options_set_error_if_exists(options: Option<&mut Options>, value: bool) {
    set(options, |options| options.error_if_exists = value);
}

/// Whether writes that name no durability survive a power failure. Default false: `WINDROW_DURABILITY_BUFFERED`.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_options_set_sync(options: Option<&mut Options>, value: bool) {
    let durability = if value {
        Durability::Sync
    } else {
        Durability::Buffered
    };
    set(options, |options| options.durability = durability);
}

/// Whether an open goes on with the commits before damage of the write-ahead log, and gives up those behind it; otherwise it
/// fails with `WINDROW_CORRUPTION`. Default false.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_options_set_up_to_damage(options: Option<&mut Options>, value: bool) {
    let recovery = if value {
        Recovery::UpToDamage
    } else {
        Recovery::Strict
    };
    set(options, |options| options.recovery = recovery);
}

/// Whether reads take blocks from memory maps; otherwise by system calls into Windrow's own cache. Default true. A device
/// error under a map can end the process.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_options_set_mapped(options: Option<&mut Options>, value: bool) {
    let source = if value {
        BlockSource::Mapped
    } else {
        BlockSource::Buffered
    };
    set(options, |options| options.block_source = source);
}

/// How long a locking transaction waits for each lock, in milliseconds. Default 1000.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_options_set_lock_timeout(
    options: Option<&mut Options>,
    milliseconds: u64,
) {
    let timeout = Duration::from_millis(milliseconds);
    set(options, |options| options.lock_timeout = timeout);
}

/// Bytes of memory that the database may take. Default 512 MiB; 0 for no limit.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_options_set_memory_budget(options: Option<&mut Options>, bytes: u64) {
    set(options, |options| options.memory_budget = bytes);
}

/// Bytes of Windrow's own block cache. Default 64 MiB.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_options_set_cache_bytes(options: Option<&mut Options>, bytes: u64) {
    set(options, |options| options.cache_bytes = bytes);
}

/// The bound on the bytes of the write-ahead log. Default 512 MiB.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_options_set_max_wal_bytes(options: Option<&mut Options>, bytes: u64) {
    set(options, |options| options.max_wal_bytes = bytes);
}

/// Threads for flushes and compactions, from 1 to 1024. Default 2.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_options_set_background_threads(
    options: Option<&mut Options>,
    threads: usize,
) {
    set(options, |options| options.background_threads = threads);
}

/// The most open table files, from 16 to 2^24. Default 512.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_options_set_open_files_max(options: Option<&mut Options>, files: usize) {
    set(options, |options| options.open_files_max = files);
}

/// The most bytes that compactions and garbage collections write in a second. Default 0, no limit.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_options_set_compaction_bytes_per_second(
    options: Option<&mut Options>,
    bytes: u64,
) {
    set(options, |options| {
        options.compaction_bytes_per_second = bytes;
    });
}

/// Bytes of disk that are kept back for a full disk. Default 4 MiB.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_options_set_reserve_bytes(options: Option<&mut Options>, bytes: u64) {
    set(options, |options| options.reserve_bytes = bytes);
}

/// Bytes on disk that each consumer of changes may hold; one that holds more falls behind. Default 1 GiB.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_options_set_change_retention_bytes(
    options: Option<&mut Options>,
    bytes: u64,
) {
    set(options, |options| options.change_retention.bytes = bytes);
}

/// How long a consumer of changes may hold a log without an acknowledgement, in milliseconds. Default a day.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_options_set_change_retention_idle(
    options: Option<&mut Options>,
    milliseconds: u64,
) {
    let idle = Duration::from_millis(milliseconds);
    set(options, |options| options.change_retention.idle = idle);
}

/// How often a mapped block is verified again, in milliseconds. Default an hour.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_options_set_scrub_interval(
    options: Option<&mut Options>,
    milliseconds: u64,
) {
    let interval = Duration::from_millis(milliseconds);
    set(options, |options| options.scrub_interval = interval);
}

/// The options of keyspaces that are created without their own. They are copied.
#[unsafe(no_mangle)]
pub extern "C" fn windrow_options_set_keyspace(
    options: Option<&mut Options>,
    keyspace: Option<&KeyspaceOptions>,
) {
    if let Some(keyspace) = check(keyspace) {
        set(options, |options| options.keyspace = keyspace.0.clone());
    }
}

/// Gives a keyspace one of the ready merge operators, by its name:
///
/// - `windrow.add_u64.wrapping`, `windrow.add_u64.saturating`, `windrow.add_i64.wrapping`, `windrow.add_i64.saturating`:
///   operands and values are numbers of 8 bytes, little-endian; the value is their sum.
/// - `windrow.least`, `windrow.greatest`: the value is the least or greatest operand, by its bytes.
/// - `windrow.append.2c`: the value is all operands, one after the other, with the bytes of these hexadecimal digits
///   between two of them; none for `windrow.append.`.
/// - `windrow.id_set.8`: operands and values are sets of ids of this many bytes; the value has each id once, ascending.
///
/// The database records the name, so that later opens need not give it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn windrow_options_set_merge_operator(
    options: Option<&mut Options>,
    keyspace: *const c_char,
    operator: *const c_char,
    error: Option<&mut MaybeUninit<Option<Box<Error>>>>,
) -> i32 {
    call(error, || {
        let options = given(options, "options")?;
        // SAFETY: the caller promises text.
        let keyspace = unsafe { text(keyspace, "name of the keyspace")? };
        // SAFETY: the same.
        let name = unsafe { text(operator, "name of the operator")? };
        let operator = operators::by_name(name).ok_or_else(|| {
            WindrowError::invalid_argument(format!("there is no merge operator \"{name}\""))
        })?;
        options.0 = options
            .0
            .clone()
            .with_merge_operator(keyspace, Arc::clone(&operator));
        Ok(())
    })
}
