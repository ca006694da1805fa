//! Secondary instances: readers of a database that another process may write.
//!
//! The folder of an instance has its log, as in RocksDB, and nothing else.

use std::ffi::{c_char, c_int};
use std::path::Path;
use std::sync::Arc;

use windrow::Result;
use windrow_ffi::calls::ErrorPointer;
use windrow_ffi::handles::give;
use windrow_ffi::leveldb::KEYSPACE;
use windrow_ffi::{given, path};

use super::databases::Families;
use super::{FamilyHandle, run_with};
use crate::database::{Access, Database, write_log};
use crate::families::Family;
use crate::options::{FamilyOptions, OpenOptions};

/// Opens a secondary instance, whose log is in `own`.
fn open(
    options: &OpenOptions,
    primary: &Path,
    own: &Path,
    families: &[FamilyOptions<'_>],
) -> Result<(Database, Vec<Arc<Family>>)> {
    let opened = Database::open(primary, options, families, Access::Secondary)?;
    write_log(own, options, families);
    Ok(opened)
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_open_as_secondary(
    options: Option<&OpenOptions>,
    name: *const c_char,
    secondary_path: *const c_char,
    errptr: ErrorPointer<'_>,
) -> Option<Box<Database>> {
    run_with(errptr, None, || {
        // SAFETY: the caller promises text, here and below.
        let primary = unsafe { path(name)? };
        // SAFETY: see above.
        let own = unsafe { path(secondary_path)? };
        let options = given(options, "options")?;
        let default = FamilyOptions {
            name: KEYSPACE,
            options,
            ttl: None,
        };
        let (database, _) = open(options, primary, own, &[default])?;
        Ok(Some(give(database)))
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn rocksdb_open_as_secondary_column_families(
    options: Option<&OpenOptions>,
    name: *const c_char,
    secondary_path: *const c_char,
    count: c_int,
    names: *const *const c_char,
    family_options: *const Option<&OpenOptions>,
    handles: *mut Option<Box<FamilyHandle>>,
    errptr: ErrorPointer<'_>,
) -> Option<Box<Database>> {
    // SAFETY: the caller promises the arrays.
    let families = unsafe { Families::new(count, names, family_options, handles) };
    run_with(errptr, None, || {
        // SAFETY: the caller promises text, here and below.
        let primary = unsafe { path(name)? };
        // SAFETY: see above.
        let own = unsafe { path(secondary_path)? };
        let options = given(options, "options")?;
        // SAFETY: the same.
        let named = unsafe { families.list()? };
        let (database, opened) = open(options, primary, own, &named)?;
        // SAFETY: the caller promises the array.
        unsafe { families.give(opened) };
        Ok(Some(give(database)))
    })
}

/// Reads what the primary has written since. A reader that was stopped for so long that the primary has given it up gets an
/// error, and the next call begins anew.
#[unsafe(no_mangle)]
extern "C" fn rocksdb_try_catch_up_with_primary(
    database: Option<&Database>,
    errptr: ErrorPointer<'_>,
) {
    run_with(errptr, (), || given(database, "database")?.catch_up());
}
