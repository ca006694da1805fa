//! Layer 3: edits, versions and file metadata.
//!
//! The manifest alone decides which files belong to the database. On disk it is a log of edits that
//! begins with a snapshot; the file `CURRENT` names the current log.
//!
//! On disk: [`edit`] and [`field_codec`] define an edit and its bytes, [`store`] makes edits durable,
//! a [`follower`] reads them back and has a [`position`] ([`salvage`] if they are damaged), [`names`] gives the names of all files, a copy of a database begins in a [`new_folder`].
//!
//! In the manifest's state: [`state`] sums up edits, [`keyspace`] is its part for one keyspace, with
//! [`values`] for the value files, and [`changes`] is its part for consumers of the change feed, with
//! its [`change_records`]. An edit that does not
//! fit is a [`contradiction`].
//!
//! For readers: a [`version`] lists the files of a keyspace, with [`level`] for the table files and
//! [`value_files`] for the value files. It holds each file by a [`handle`]; [`obsolete`] decides when
//! a file may be deleted.

mod change_records;
mod changes;
mod contradiction;
mod edit;
mod field_codec;
mod follower;
mod handle;
mod keyspace;
mod level;
pub(crate) mod names;
mod new_folder;
mod obsolete;
mod position;
mod reference_changes;
mod salvage;
mod state;
mod store;
#[cfg(test)]
mod tests;
mod value_files;
mod values;
mod version;

pub(crate) use change_records::{ChangeEvent, ConsumerState, KeptLog};
pub(crate) use changes::ChangeState;
pub(crate) use contradiction::Contradiction;
pub(crate) use edit::{Edit, Record};
pub(crate) use follower::{ChangedKeyspaces, ManifestFollower, read_manifest};
pub(crate) use handle::{FileHandle, ValueHandle};
pub(crate) use keyspace::KeyspaceState;
pub(crate) use level::{Level, Place};
pub(crate) use new_folder::{NewFolder, put_mark, remove_mark};
pub(crate) use obsolete::Obsolete;
pub(crate) use position::ManifestPosition;
pub(crate) use reference_changes::ReferenceChanges;
pub(crate) use salvage::read_edits;
pub(crate) use state::ManifestState;
pub(crate) use store::{ManifestStore, manifest_length, read_current};
pub(crate) use value_files::ValueFiles;
pub(crate) use values::{ValueFileKind, ValueFileState, ValueState};
pub(crate) use version::Version;
