//! LevelDB's C interface behind safe types, as far as the bench needs it.
//!
//! # Safety argument
//!
//! - Every pointer here comes from the LevelDB function that creates it, is never null (LevelDB allocates with
//!   `new`, which does not return null; `leveldb_open` is checked through its error), and is destroyed once, by the
//!   `Drop` of the type that owns it.
//! - [`Iterator`] borrows its [`Database`], so it is destroyed first, as LevelDB demands.
//! - LevelDB may be used from several threads at once (its `db.h` says so), except for iterators,
//!   which are neither `Send` nor `Sync` because they hold a raw pointer.
//! - The bytes of an iterator's key and value live until the iterator moves. The slices borrow the
//!   iterator, and a move takes it mutably.
//! - An iterator must be on an entry for its key, its value and a step. [`Iterator`] notes after each
//!   move whether it is, as LevelDB reports. Only a move of the same iterator changes that, and every move
//!   goes through `moved`.
#![expect(unsafe_code, reason = "the C interface of LevelDB")]

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::marker::{PhantomData, PhantomPinned};
use std::path::Path;
use std::ptr::{self, NonNull};

use windrow::{Error, ErrorKind, Result};

use crate::settings::Settings;

/// An object whose content only LevelDB knows.
#[repr(C)]
struct Opaque {
    bytes: [u8; 0],
    marker: PhantomData<(*mut u8, PhantomPinned)>,
}

#[link(name = "leveldb")]
unsafe extern "C" {
    fn leveldb_open(
        options: *const Opaque,
        name: *const c_char,
        error: *mut *mut c_char,
    ) -> *mut Opaque;
    fn leveldb_close(db: *mut Opaque);
    fn leveldb_put(
        db: *mut Opaque,
        options: *const Opaque,
        key: *const u8,
        key_length: usize,
        value: *const u8,
        value_length: usize,
        error: *mut *mut c_char,
    );
    fn leveldb_delete(
        db: *mut Opaque,
        options: *const Opaque,
        key: *const u8,
        key_length: usize,
        error: *mut *mut c_char,
    );
    fn leveldb_write(
        db: *mut Opaque,
        options: *const Opaque,
        batch: *mut Opaque,
        error: *mut *mut c_char,
    );
    fn leveldb_get(
        db: *mut Opaque,
        options: *const Opaque,
        key: *const u8,
        key_length: usize,
        value_length: *mut usize,
        error: *mut *mut c_char,
    ) -> *mut u8;
    fn leveldb_compact_range(
        db: *mut Opaque,
        start: *const u8,
        start_length: usize,
        limit: *const u8,
        limit_length: usize,
    );
    fn leveldb_approximate_sizes(
        db: *mut Opaque,
        ranges: c_int,
        starts: *const *const u8,
        start_lengths: *const usize,
        limits: *const *const u8,
        limit_lengths: *const usize,
        sizes: *mut u64,
    );
    fn leveldb_property_value(db: *mut Opaque, name: *const c_char) -> *mut c_char;
    fn leveldb_major_version() -> c_int;
    fn leveldb_minor_version() -> c_int;
    fn leveldb_free(pointer: *mut c_void);

    fn leveldb_writebatch_create() -> *mut Opaque;
    fn leveldb_writebatch_destroy(batch: *mut Opaque);
    fn leveldb_writebatch_put(
        batch: *mut Opaque,
        key: *const u8,
        key_length: usize,
        value: *const u8,
        value_length: usize,
    );

    fn leveldb_create_iterator(db: *mut Opaque, options: *const Opaque) -> *mut Opaque;
    fn leveldb_iter_destroy(iterator: *mut Opaque);
    fn leveldb_iter_valid(iterator: *const Opaque) -> u8;
    fn leveldb_iter_seek(iterator: *mut Opaque, key: *const u8, key_length: usize);
    fn leveldb_iter_seek_to_last(iterator: *mut Opaque);
    fn leveldb_iter_next(iterator: *mut Opaque);
    fn leveldb_iter_prev(iterator: *mut Opaque);
    fn leveldb_iter_key(iterator: *const Opaque, length: *mut usize) -> *const u8;
    fn leveldb_iter_value(iterator: *const Opaque, length: *mut usize) -> *const u8;
    fn leveldb_iter_get_error(iterator: *const Opaque, error: *mut *mut c_char);

    fn leveldb_options_create() -> *mut Opaque;
    fn leveldb_options_destroy(options: *mut Opaque);
    fn leveldb_options_set_create_if_missing(options: *mut Opaque, choice: u8);
    fn leveldb_options_set_write_buffer_size(options: *mut Opaque, bytes: usize);
    fn leveldb_options_set_block_size(options: *mut Opaque, bytes: usize);
    fn leveldb_options_set_max_file_size(options: *mut Opaque, bytes: usize);
    fn leveldb_options_set_max_open_files(options: *mut Opaque, files: c_int);
    fn leveldb_options_set_compression(options: *mut Opaque, compression: c_int);
    fn leveldb_options_set_cache(options: *mut Opaque, cache: *mut Opaque);
    fn leveldb_options_set_filter_policy(options: *mut Opaque, policy: *mut Opaque);
    fn leveldb_cache_create_lru(bytes: usize) -> *mut Opaque;
    fn leveldb_cache_destroy(cache: *mut Opaque);
    fn leveldb_filterpolicy_create_bloom(bits_per_key: c_int) -> *mut Opaque;
    fn leveldb_filterpolicy_destroy(policy: *mut Opaque);
    fn leveldb_readoptions_create() -> *mut Opaque;
    fn leveldb_readoptions_destroy(options: *mut Opaque);
    fn leveldb_writeoptions_create() -> *mut Opaque;
    fn leveldb_writeoptions_destroy(options: *mut Opaque);
    fn leveldb_writeoptions_set_sync(options: *mut Opaque, choice: u8);
}

const NO_COMPRESSION: c_int = 0;
/// The most tables that may stay open: LevelDB's maximum.
pub(super) const OPEN_FILES_MAX: c_int = 50_000;

/// An open database and everything that must live as long as it.
pub(super) struct Database {
    db: *mut Opaque,
    options: *mut Opaque,
    read_options: *mut Opaque,
    write_options: *mut Opaque,
    synced_write_options: *mut Opaque,
    cache: *mut Opaque,
    /// Null without filters.
    filter: *mut Opaque,
}

// SAFETY: LevelDB's database, cache and options may be used from any thread.
unsafe impl Send for Database {}
// SAFETY: as above; every call through `&Database` is one that LevelDB synchronises itself.
unsafe impl Sync for Database {}

impl Database {
    /// Opens or creates the database in `folder`.
    pub(super) fn open(folder: &Path, settings: &Settings, file_bytes: usize) -> Result<Self> {
        let name = CString::new(folder.as_os_str().as_encoded_bytes())
            .map_err(|_| Error::invalid_argument("a path cannot hold a zero byte"))?;
        let mut database = Self::unopened(settings, file_bytes);
        let mut error = ptr::null_mut();
        // SAFETY: the options and the name live through the call, and the error is null.
        database.db = unsafe { leveldb_open(database.options, name.as_ptr(), &raw mut error) };
        check(error)?;
        Ok(database)
    }

    #[expect(clippy::multiple_unsafe_ops_per_block, reason = "one list of settings")]
    fn unopened(settings: &Settings, file_bytes: usize) -> Self {
        let bits_per_key = settings.bloom_bits();
        // SAFETY: the setters get objects that were just created, and these live as long as the
        // options, for `Drop` destroys the options first.
        unsafe {
            let options = leveldb_options_create();
            let cache = leveldb_cache_create_lru(settings.cache_bytes);
            leveldb_options_set_create_if_missing(options, 1);
            leveldb_options_set_write_buffer_size(options, settings.memtable_bytes);
            leveldb_options_set_block_size(options, settings.block_bytes);
            leveldb_options_set_compression(options, NO_COMPRESSION);
            leveldb_options_set_cache(options, cache);
            leveldb_options_set_max_file_size(options, file_bytes);
            leveldb_options_set_max_open_files(options, OPEN_FILES_MAX);
            let mut filter = ptr::null_mut();
            if bits_per_key > 0 {
                filter = leveldb_filterpolicy_create_bloom(bits_per_key);
                leveldb_options_set_filter_policy(options, filter);
            }
            let write_options = leveldb_writeoptions_create();
            leveldb_writeoptions_set_sync(write_options, u8::from(settings.sync));
            let synced_write_options = leveldb_writeoptions_create();
            leveldb_writeoptions_set_sync(synced_write_options, 1);
            Self {
                db: ptr::null_mut(),
                options,
                read_options: leveldb_readoptions_create(),
                write_options,
                synced_write_options,
                cache,
                filter,
            }
        }
    }

    pub(super) fn put(&self, key: &[u8], value: &[u8]) -> Result<()> {
        self.put_with(self.write_options, key, value)
    }

    pub(super) fn put_synced(&self, key: &[u8], value: &[u8]) -> Result<()> {
        self.put_with(self.synced_write_options, key, value)
    }

    /// Puts under `options`, which are write options of this database.
    fn put_with(&self, options: *const Opaque, key: &[u8], value: &[u8]) -> Result<()> {
        let mut error = ptr::null_mut();
        // SAFETY: the slices and the options live through the call, and the error is null.
        unsafe {
            leveldb_put(
                self.db,
                options,
                key.as_ptr(),
                key.len(),
                value.as_ptr(),
                value.len(),
                &raw mut error,
            );
        }
        check(error)
    }

    /// Puts all entries of `batch` in one record of the log.
    pub(super) fn write(&self, batch: &mut Batch) -> Result<()> {
        let mut error = ptr::null_mut();
        // SAFETY: the batch and the options live through the call, and the error is null.
        unsafe { leveldb_write(self.db, self.write_options, batch.0, &raw mut error) };
        check(error)
    }

    pub(super) fn delete(&self, key: &[u8]) -> Result<()> {
        let mut error = ptr::null_mut();
        // SAFETY: the slice lives through the call, and the error is null.
        unsafe {
            leveldb_delete(
                self.db,
                self.write_options,
                key.as_ptr(),
                key.len(),
                &raw mut error,
            );
        }
        check(error)
    }

    pub(super) fn get(&self, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        value.clear();
        let mut error = ptr::null_mut();
        let mut length = 0;
        // SAFETY: the slice lives through the call, and the error is null.
        let found = unsafe {
            leveldb_get(
                self.db,
                self.read_options,
                key.as_ptr(),
                key.len(),
                &raw mut length,
                &raw mut error,
            )
        };
        check(error)?;
        let Some(found) = NonNull::new(found) else {
            return Ok(false);
        };
        // SAFETY: a pointer that is not null points to `length` bytes, which are ours.
        value.extend_from_slice(unsafe { std::slice::from_raw_parts(found.as_ptr(), length) });
        // SAFETY: allocated by LevelDB, and not used again.
        unsafe { leveldb_free(found.as_ptr().cast()) };
        Ok(true)
    }

    /// Flushes the memtable. The interface has no call for that, but the compaction of any range flushes
    /// first. This range lies behind all keys of the bench, which are digits, so nothing else is compacted.
    pub(super) fn flush(&self) {
        let behind = [u8::MAX];
        // SAFETY: the array lives through the call.
        unsafe {
            leveldb_compact_range(
                self.db,
                behind.as_ptr(),
                behind.len(),
                behind.as_ptr(),
                behind.len(),
            );
        }
    }

    /// Compacts everything into the last level.
    pub(super) fn compact(&self) {
        // SAFETY: a null bound is none.
        unsafe { leveldb_compact_range(self.db, ptr::null(), 0, ptr::null(), 0) };
    }

    /// About how many bytes of tables hold the keys from `from` on that are before `to`.
    pub(super) fn approximate_size(&self, from: &[u8], to: &[u8]) -> u64 {
        let mut size = 0;
        let (start, start_length) = (from.as_ptr(), from.len());
        let (limit, limit_length) = (to.as_ptr(), to.len());
        // SAFETY: each array has one element, the slices live through the call, and so does the size.
        unsafe {
            leveldb_approximate_sizes(
                self.db,
                1,
                &raw const start,
                &raw const start_length,
                &raw const limit,
                &raw const limit_length,
                &raw mut size,
            );
        }
        size
    }

    /// LevelDB's property `name`.
    pub(super) fn property(&self, name: &CStr) -> Option<String> {
        // SAFETY: the name lives through the call.
        let text = NonNull::new(unsafe { leveldb_property_value(self.db, name.as_ptr()) })?;
        Some(owned(text))
    }

    pub(super) fn iterator(&self) -> Iterator<'_> {
        Iterator {
            // SAFETY: database and options are alive.
            handle: unsafe { leveldb_create_iterator(self.db, self.read_options) },
            is_on_entry: false,
            database: PhantomData,
        }
    }
}

impl Drop for Database {
    #[expect(
        clippy::multiple_unsafe_ops_per_block,
        reason = "one list of what is owned"
    )]
    fn drop(&mut self) {
        // SAFETY: each object is owned, and destroyed once: users before what they use.
        unsafe {
            if !self.db.is_null() {
                leveldb_close(self.db);
            }
            leveldb_readoptions_destroy(self.read_options);
            leveldb_writeoptions_destroy(self.write_options);
            leveldb_writeoptions_destroy(self.synced_write_options);
            leveldb_options_destroy(self.options);
            leveldb_cache_destroy(self.cache);
            if !self.filter.is_null() {
                leveldb_filterpolicy_destroy(self.filter);
            }
        }
    }
}

/// The version of the library.
pub(super) fn version() -> String {
    // SAFETY: it takes nothing.
    let major = unsafe { leveldb_major_version() };
    // SAFETY: as above.
    let minor = unsafe { leveldb_minor_version() };
    format!("{major}.{minor}")
}

/// Entries to put at once.
pub(super) struct Batch(*mut Opaque);

impl Batch {
    pub(super) fn new() -> Self {
        // SAFETY: it takes nothing.
        Self(unsafe { leveldb_writebatch_create() })
    }

    /// Adds `key` with `value`, which are copied.
    pub(super) fn put(&mut self, key: &[u8], value: &[u8]) {
        // SAFETY: the batch is alive, and the slices live through the call.
        unsafe {
            leveldb_writebatch_put(self.0, key.as_ptr(), key.len(), value.as_ptr(), value.len());
        }
    }
}

impl Drop for Batch {
    fn drop(&mut self) {
        // SAFETY: owned, destroyed once.
        unsafe { leveldb_writebatch_destroy(self.0) };
    }
}

/// A position in a database.
pub(super) struct Iterator<'a> {
    handle: *mut Opaque,
    /// Whether the last move ended on an entry. A new iterator is on none.
    is_on_entry: bool,
    database: PhantomData<&'a Database>,
}

/// Every move returns whether it ended on an entry.
impl Iterator<'_> {
    pub(super) fn seek(&mut self, key: &[u8]) -> Result<bool> {
        // SAFETY: the slice lives through the call.
        unsafe { leveldb_iter_seek(self.handle, key.as_ptr(), key.len()) };
        self.moved()
    }

    /// Moves forward. The iterator must be on an entry.
    pub(super) fn next(&mut self) -> Result<bool> {
        assert!(self.is_on_entry);
        // SAFETY: the iterator stands on an entry, as LevelDB demands.
        unsafe { leveldb_iter_next(self.handle) };
        self.moved()
    }

    /// Moves back. The iterator must be on an entry.
    pub(super) fn prev(&mut self) -> Result<bool> {
        assert!(self.is_on_entry);
        // SAFETY: the iterator stands on an entry, as LevelDB demands.
        unsafe { leveldb_iter_prev(self.handle) };
        self.moved()
    }

    pub(super) fn seek_to_last(&mut self) -> Result<bool> {
        // SAFETY: the iterator is alive.
        unsafe { leveldb_iter_seek_to_last(self.handle) };
        self.moved()
    }

    /// Notes whether the iterator is on an entry after a move.
    fn moved(&mut self) -> Result<bool> {
        // SAFETY: the iterator is alive.
        self.is_on_entry = unsafe { leveldb_iter_valid(self.handle) != 0 };
        if !self.is_on_entry {
            let mut error = ptr::null_mut();
            // SAFETY: the error is null.
            unsafe { leveldb_iter_get_error(self.handle, &raw mut error) };
            check(error)?;
        }
        Ok(self.is_on_entry)
    }

    pub(super) fn key(&self) -> &[u8] {
        assert!(self.is_on_entry);
        let mut length = 0;
        // SAFETY: the iterator stands on an entry.
        let start = unsafe { leveldb_iter_key(self.handle, &raw mut length) };
        // SAFETY: the bytes live until the iterator moves, and so does the borrow.
        unsafe { std::slice::from_raw_parts(start, length) }
    }

    pub(super) fn value(&self) -> &[u8] {
        assert!(self.is_on_entry);
        let mut length = 0;
        // SAFETY: the iterator stands on an entry.
        let start = unsafe { leveldb_iter_value(self.handle, &raw mut length) };
        if length == 0 {
            return &[];
        }
        // SAFETY: the bytes live until the iterator moves, and so does the borrow.
        unsafe { std::slice::from_raw_parts(start, length) }
    }
}

impl Drop for Iterator<'_> {
    fn drop(&mut self) {
        // SAFETY: owned, destroyed once, before its database.
        unsafe { leveldb_iter_destroy(self.handle) };
    }
}

/// Turns LevelDB's message, if any, into an error.
fn check(error: *mut c_char) -> Result<()> {
    match NonNull::new(error) {
        None => Ok(()),
        Some(text) => Err(Error::new(
            ErrorKind::Io,
            format!("LevelDB: {}", owned(text)),
        )),
    }
}

/// Takes ownership of a text that LevelDB allocated.
fn owned(text: NonNull<c_char>) -> String {
    // SAFETY: LevelDB's texts end with a zero byte.
    let copy = unsafe { CStr::from_ptr(text.as_ptr()) };
    let copy = copy.to_string_lossy().into_owned();
    // SAFETY: allocated by LevelDB, and not used again.
    unsafe { leveldb_free(text.as_ptr().cast()) };
    copy
}
