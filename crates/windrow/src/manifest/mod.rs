//! Layer 3: edits, versions and file metadata.
//!
//! The manifest alone decides which files belong to the database. On disk it is a log of edits that
//! begins with a snapshot; the file `CURRENT` names the current log.
//!
//! On disk: [`edit`] and [`field_codec`] define an edit and its bytes, [`store`] makes edits durable
//! and reads them back, [`names`] gives the names of all files, a copy of a database begins in a [`new_folder`].
//!
//! In the manifest's state: [`state`] sums up edits, [`keyspace`] is its part for one keyspace, with
//! [`values`] for the value files. An edit that does not fit is a [`contradiction`].
//!
//! For readers: a [`version`] lists the files of a keyspace, with [`level`] for the table files and
//! [`value_files`] for the value files. It holds each file by a [`handle`]; [`obsolete`] decides when
//! a file may be deleted.

mod contradiction;
mod edit;
mod field_codec;
mod handle;
mod keyspace;
mod level;
pub(crate) mod names;
mod new_folder;
mod obsolete;
mod reference_changes;
mod state;
mod store;
#[cfg(test)]
mod tests;
mod value_files;
mod values;
mod version;

pub(crate) use edit::{Edit, Record};
pub(crate) use handle::{FileHandle, ValueHandle};
pub(crate) use keyspace::KeyspaceState;
pub(crate) use level::{Level, Place};
pub(crate) use new_folder::NewFolder;
pub(crate) use obsolete::Obsolete;
pub(crate) use reference_changes::ReferenceChanges;
pub(crate) use state::ManifestState;
pub(crate) use store::{ManifestStore, manifest_length, read_current, read_edits, read_manifest};
pub(crate) use value_files::ValueFiles;
pub(crate) use values::{ValueFileKind, ValueFileState, ValueLogUsage, ValueState};
pub(crate) use version::Version;
