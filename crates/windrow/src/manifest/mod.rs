//! Layer 3: edits, versions and file metadata.
//!
//! The manifest is the one authority on what the database consists of. On disk it is a log of
//! edits that begins with a snapshot; the file `CURRENT` names the log that counts.
//!
//! - [`names`]: how the files of a database are called.
//! - [`edit`] and [`file_codec`]: an edit, and its bytes.
//! - [`state`]: what a sequence of edits adds up to; pure.
//! - [`store`]: edits made durable, and read back.
//! - [`values`]: the value files of a keyspace among that.
//! - [`version`]: the files of a keyspace as readers see them, and when a file may be deleted.

mod edit;
mod file_codec;
pub(crate) mod names;
mod state;
mod store;
#[cfg(test)]
mod tests;
mod values;
mod version;

pub(crate) use edit::{Edit, KEYSPACE_NAME_BYTES_MAX, Record};
pub(crate) use state::{KeyspaceState, ManifestState};
pub(crate) use store::{ManifestStore, manifest_length, read_current, read_manifest};
pub(crate) use values::{LogUse, ValueFileKind, ValueFileState, ValueState};
pub(crate) use version::{FileHandle, Level, Obsolete, ValueFiles, ValueHandle, Version};
