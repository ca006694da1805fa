//! Databases and column families: open, close, create, drop, list, remove.

use std::ffi::{c_char, c_int};
use std::mem::MaybeUninit;
use std::ptr::null_mut;
use std::sync::Arc;
use std::time::Duration;

use windrow::Result;
use windrow_ffi::calls::{ErrorPointer, elements, outputs, run};
use windrow_ffi::handles::{check, give, take};
use windrow_ffi::leveldb::{KEYSPACE, destroy_with};
use windrow_ffi::{allocate, given, path, release, text};

use super::{FamilyHandle, run_with};
use crate::database::{Access, Database, time_to_live};
use crate::families::Family;
use crate::options::{FamilyOptions, LockTimeouts, OpenOptions};
use crate::{log, status};

/// Opens a database with the family `default` alone.
///
/// # Safety
/// The name is text.
unsafe fn open(
    options: Option<&OpenOptions>,
    name: *const c_char,
    ttl: Option<Duration>,
    access: Access,
    errptr: ErrorPointer<'_>,
) -> Option<Box<Database>> {
    run_with(errptr, None, || {
        // SAFETY: the caller promises text.
        let path = unsafe { path(name)? };
        let options = given(options, "options")?;
        let default = FamilyOptions {
            name: KEYSPACE,
            options,
            ttl,
        };
        let (database, _) = Database::open(path, options, &[default], access)?;
        Ok(Some(give(database)))
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_open(
    options: Option<&OpenOptions>,
    name: *const c_char,
    errptr: ErrorPointer<'_>,
) -> Option<Box<Database>> {
    // SAFETY: the caller promises text.
    unsafe { open(options, name, None, Access::ReadWrite, errptr) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_open_with_ttl(
    options: Option<&OpenOptions>,
    name: *const c_char,
    seconds: c_int,
    errptr: ErrorPointer<'_>,
) -> Option<Box<Database>> {
    let ttl = time_to_live(seconds);
    // SAFETY: the caller promises text.
    unsafe { open(options, name, ttl, Access::ReadWrite, errptr) }
}

/// A log with entries is no error: they are read into memory.
#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_open_for_read_only(
    options: Option<&OpenOptions>,
    name: *const c_char,
    _error_if_wal_exists: u8,
    errptr: ErrorPointer<'_>,
) -> Option<Box<Database>> {
    // SAFETY: the caller promises text.
    unsafe { open(options, name, None, Access::ReadOnly, errptr) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_optimistictransactiondb_open(
    options: Option<&OpenOptions>,
    name: *const c_char,
    errptr: ErrorPointer<'_>,
) -> Option<Box<Database>> {
    // SAFETY: the caller promises text.
    unsafe { rocksdb_open(options, name, errptr) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_transactiondb_open(
    options: Option<&OpenOptions>,
    transaction_options: Option<&LockTimeouts>,
    name: *const c_char,
    errptr: ErrorPointer<'_>,
) -> Option<Box<Database>> {
    // SAFETY: the caller promises text.
    let mut database = unsafe { rocksdb_open(options, name, errptr)? };
    database.locks = Some(check(transaction_options).copied().unwrap_or_default());
    Some(database)
}

/// The column families that an open names, as the caller passes them.
#[derive(Clone, Copy)]
pub(super) struct Families<'a> {
    names: &'a [*const c_char],
    options: &'a [Option<&'a OpenOptions>],
    /// In seconds; none for no times to live.
    ttls: &'a [c_int],
    /// Where the handles go.
    handles: *mut Option<Box<FamilyHandle>>,
}

impl<'a> Families<'a> {
    /// # Safety
    /// The arrays have `count` elements.
    pub(super) unsafe fn new(
        count: c_int,
        names: *const *const c_char,
        options: *const Option<&'a OpenOptions>,
        handles: *mut Option<Box<FamilyHandle>>,
    ) -> Self {
        let count = usize::try_from(count).unwrap_or_default();
        Self {
            // SAFETY: the caller promises arrays with `count` elements, here and below.
            names: unsafe { elements(names, count) },
            // SAFETY: see above.
            options: unsafe { elements(options, count) },
            ttls: &[],
            handles,
        }
    }

    /// # Safety
    /// The names are text.
    pub(super) unsafe fn list(self) -> Result<Vec<FamilyOptions<'a>>> {
        let family = |(position, (&name, &options)): (usize, (&*const c_char, &Option<_>))| {
            let ttl = self.ttls.get(position);
            Ok(FamilyOptions {
                // SAFETY: the caller promises text.
                name: unsafe { text(name, "name of a column family")? },
                options: given(options, "options of a column family")?,
                ttl: ttl.and_then(|seconds| time_to_live(*seconds)),
            })
        };
        let pairs = self.names.iter().zip(self.options);
        pairs.enumerate().map(family).collect()
    }

    /// Makes the handles.
    ///
    /// # Safety
    /// The array of handles is as long as that of the names.
    pub(super) unsafe fn give(self, opened: Vec<Arc<Family>>) {
        // SAFETY: the caller promises the array.
        let handles = unsafe { outputs(self.handles, opened.len()) };
        for (handle, family) in handles.iter_mut().zip(opened) {
            handle.write(Some(FamilyHandle::new(family)));
        }
    }
}

/// # Safety
/// The name and those of the families are text, and the array of handles is as long as that of the names.
unsafe fn open_families(
    options: Option<&OpenOptions>,
    name: *const c_char,
    families: Families<'_>,
    access: Access,
    errptr: ErrorPointer<'_>,
) -> Option<Box<Database>> {
    run_with(errptr, None, || {
        // SAFETY: the caller promises text.
        let path = unsafe { path(name)? };
        let options = given(options, "options")?;
        // SAFETY: the same.
        let named = unsafe { families.list()? };
        let (database, opened) = Database::open(path, options, &named, access)?;
        // SAFETY: the caller promises the array.
        unsafe { families.give(opened) };
        Ok(Some(give(database)))
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_open_column_families(
    options: Option<&OpenOptions>,
    name: *const c_char,
    count: c_int,
    names: *const *const c_char,
    family_options: *const Option<&OpenOptions>,
    handles: *mut Option<Box<FamilyHandle>>,
    errptr: ErrorPointer<'_>,
) -> Option<Box<Database>> {
    // SAFETY: the caller promises the arrays.
    let families = unsafe { Families::new(count, names, family_options, handles) };
    // SAFETY: the caller promises text.
    unsafe { open_families(options, name, families, Access::ReadWrite, errptr) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_open_column_families_with_ttl(
    options: Option<&OpenOptions>,
    name: *const c_char,
    count: c_int,
    names: *const *const c_char,
    family_options: *const Option<&OpenOptions>,
    handles: *mut Option<Box<FamilyHandle>>,
    ttls: *const c_int,
    errptr: ErrorPointer<'_>,
) -> Option<Box<Database>> {
    // SAFETY: the caller promises the arrays.
    let mut families = unsafe { Families::new(count, names, family_options, handles) };
    // SAFETY: the same.
    families.ttls = unsafe { elements(ttls, families.names.len()) };
    // SAFETY: the caller promises text.
    unsafe { open_families(options, name, families, Access::ReadWrite, errptr) }
}

/// As `rocksdb_open_for_read_only`.
#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_open_for_read_only_column_families(
    options: Option<&OpenOptions>,
    name: *const c_char,
    count: c_int,
    names: *const *const c_char,
    family_options: *const Option<&OpenOptions>,
    handles: *mut Option<Box<FamilyHandle>>,
    _error_if_wal_exists: u8,
    errptr: ErrorPointer<'_>,
) -> Option<Box<Database>> {
    // SAFETY: the caller promises the arrays.
    let families = unsafe { Families::new(count, names, family_options, handles) };
    // SAFETY: the caller promises text.
    unsafe { open_families(options, name, families, Access::ReadOnly, errptr) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_optimistictransactiondb_open_column_families(
    options: Option<&OpenOptions>,
    name: *const c_char,
    count: c_int,
    names: *const *const c_char,
    family_options: *const Option<&OpenOptions>,
    handles: *mut Option<Box<FamilyHandle>>,
    errptr: ErrorPointer<'_>,
) -> Option<Box<Database>> {
    // SAFETY: the caller promises the arrays.
    let families = unsafe { Families::new(count, names, family_options, handles) };
    // SAFETY: the caller promises text.
    unsafe { open_families(options, name, families, Access::ReadWrite, errptr) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_transactiondb_open_column_families(
    options: Option<&OpenOptions>,
    transaction_options: Option<&LockTimeouts>,
    name: *const c_char,
    count: c_int,
    names: *const *const c_char,
    family_options: *const Option<&OpenOptions>,
    handles: *mut Option<Box<FamilyHandle>>,
    errptr: ErrorPointer<'_>,
) -> Option<Box<Database>> {
    // SAFETY: the caller promises the arrays.
    let families = unsafe { Families::new(count, names, family_options, handles) };
    // SAFETY: the caller promises text.
    let mut database =
        unsafe { open_families(options, name, families, Access::ReadWrite, errptr)? };
    database.locks = Some(check(transaction_options).copied().unwrap_or_default());
    Some(database)
}

/// Defines functions that close a database. A failed sync of the last writes is not reported, as in RocksDB.
macro_rules! closes {
    ($($name:ident)*) => {
        $(#[unsafe(no_mangle)]
        extern "C" fn $name(database: Option<Box<Database>>) {
            run((), || {
                if let Some(database) = take(database) {
                    drop(database.close());
                }
            });
        })*
    };
}

closes!(rocksdb_close rocksdb_transactiondb_close rocksdb_optimistictransactiondb_close);

/// The database without its transactions: writes to it take no locks. It is destroyed by its own function.
fn base_of(database: Option<&Database>) -> Option<Box<Database>> {
    run(None, || {
        check(database).map(|database| {
            give(Database {
                shared: Arc::clone(&database.shared),
                locks: None,
            })
        })
    })
}

#[unsafe(no_mangle)]
extern "C" fn rocksdb_transactiondb_get_base_db(
    database: Option<&Database>,
) -> Option<Box<Database>> {
    base_of(database)
}

#[unsafe(no_mangle)]
extern "C" fn rocksdb_optimistictransactiondb_get_base_db(
    database: Option<&Database>,
) -> Option<Box<Database>> {
    base_of(database)
}

/// The database itself stays open.
#[unsafe(no_mangle)]
extern "C" fn rocksdb_transactiondb_close_base_db(base: Option<Box<Database>>) {
    run((), || drop(take(base)));
}

/// The database itself stays open.
#[unsafe(no_mangle)]
extern "C" fn rocksdb_optimistictransactiondb_close_base_db(base: Option<Box<Database>>) {
    run((), || drop(take(base)));
}

/// # Safety
/// The name is text.
unsafe fn create_family(
    database: Option<&Database>,
    options: Option<&OpenOptions>,
    name: *const c_char,
    ttl: Option<Duration>,
    errptr: ErrorPointer<'_>,
) -> Option<Box<FamilyHandle>> {
    run_with(errptr, None, || {
        let family = FamilyOptions {
            // SAFETY: the caller promises text.
            name: unsafe { text(name, "name of a column family")? },
            options: given(options, "options")?,
            ttl,
        };
        let created = given(database, "database")?.create_family(&family)?;
        Ok(Some(FamilyHandle::new(created)))
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_create_column_family(
    database: Option<&Database>,
    options: Option<&OpenOptions>,
    name: *const c_char,
    errptr: ErrorPointer<'_>,
) -> Option<Box<FamilyHandle>> {
    // SAFETY: the caller promises text.
    unsafe { create_family(database, options, name, None, errptr) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_create_column_family_with_ttl(
    database: Option<&Database>,
    options: Option<&OpenOptions>,
    name: *const c_char,
    seconds: c_int,
    errptr: ErrorPointer<'_>,
) -> Option<Box<FamilyHandle>> {
    // SAFETY: the caller promises text.
    unsafe { create_family(database, options, name, time_to_live(seconds), errptr) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_transactiondb_create_column_family(
    database: Option<&Database>,
    options: Option<&OpenOptions>,
    name: *const c_char,
    errptr: ErrorPointer<'_>,
) -> Option<Box<FamilyHandle>> {
    // SAFETY: the caller promises text.
    unsafe { create_family(database, options, name, None, errptr) }
}

/// The handle must be destroyed afterwards. Calls with other handles of the family are errors then.
#[unsafe(no_mangle)]
extern "C" fn rocksdb_drop_column_family(
    database: Option<&Database>,
    handle: Option<&FamilyHandle>,
    errptr: ErrorPointer<'_>,
) {
    run_with(errptr, (), || {
        let family: &Family = &given(handle, "column family")?.family;
        given(database, "database")?.drop_family(family)
    });
}

#[unsafe(no_mangle)]
extern "C" fn rocksdb_column_family_handle_destroy(handle: Option<Box<FamilyHandle>>) {
    run((), || drop(take(handle)));
}

#[unsafe(no_mangle)]
extern "C" fn rocksdb_column_family_handle_get_id(handle: Option<&FamilyHandle>) -> u32 {
    check(handle).map_or(0, |handle| handle.family.id)
}

/// The caller frees the name.
#[unsafe(no_mangle)]
extern "C" fn rocksdb_column_family_handle_get_name(
    handle: Option<&FamilyHandle>,
    length: Option<&mut MaybeUninit<usize>>,
) -> *mut c_char {
    run(null_mut(), || {
        let name = check(handle).map_or("", |handle| &handle.family.name);
        if let Some(length) = length {
            length.write(name.len());
        }
        allocate(name.as_bytes()).unwrap_or(null_mut())
    })
}

/// The caller destroys the handle.
#[unsafe(no_mangle)]
extern "C" fn rocksdb_get_default_column_family_handle(
    database: Option<&Database>,
) -> Option<Box<FamilyHandle>> {
    run(None, || {
        check(database).map(|database| FamilyHandle::new(Arc::clone(&database.shared.default)))
    })
}

/// The caller frees the list by `rocksdb_list_column_families_destroy`.
#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_list_column_families(
    options: Option<&OpenOptions>,
    name: *const c_char,
    count: Option<&mut MaybeUninit<usize>>,
    errptr: ErrorPointer<'_>,
) -> *mut *mut c_char {
    let (list, length) = run_with(errptr, (null_mut(), 0), || {
        // SAFETY: the caller promises text.
        let path = unsafe { path(name)? };
        let names = Database::family_names(path, given(options, "options")?)?;
        let copies = names.iter().map(|name| allocate(name.as_bytes()));
        let copies = copies.collect::<Result<Vec<*mut c_char>>>()?;
        Ok((array(&copies)?, copies.len()))
    });
    if let Some(count) = count {
        count.write(length);
    }
    list
}

/// A copy of an array in memory of `malloc`.
fn array(elements: &[*mut c_char]) -> Result<*mut *mut c_char> {
    // SAFETY: an overflow of the size is no memory.
    let copy = unsafe { libc::calloc(elements.len().max(1), size_of::<*mut c_char>()) };
    let copy = copy.cast::<*mut c_char>();
    if copy.is_null() {
        return Err(windrow::Error::new(
            windrow::ErrorKind::Io,
            "there is no memory",
        ));
    }
    // SAFETY: there is space for the elements, and it is new.
    unsafe { copy.copy_from_nonoverlapping(elements.as_ptr(), elements.len()) };
    Ok(copy)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_list_column_families_destroy(list: *mut *mut c_char, length: usize) {
    // SAFETY: the caller promises a list of this library.
    for name in unsafe { elements(list, length) } {
        // SAFETY: it was made by `allocate`.
        unsafe { release((*name).cast()) };
    }
    // SAFETY: the list itself is memory of `malloc`, or null.
    unsafe { release(list.cast()) };
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_destroy_db(
    options: Option<&OpenOptions>,
    name: *const c_char,
    errptr: ErrorPointer<'_>,
) {
    run_with(errptr, (), || {
        // SAFETY: the caller promises text.
        let path = unsafe { path(name)? };
        given(options, "options")?;
        destroy_with(path, &[log::FILE]).map_err(|error| status::of_folder(path, error))
    });
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_repair_db(
    options: Option<&OpenOptions>,
    name: *const c_char,
    errptr: ErrorPointer<'_>,
) {
    run_with(errptr, (), || {
        // SAFETY: the caller promises text.
        let path = unsafe { path(name)? };
        Database::repair(path, given(options, "options")?)
    });
}
