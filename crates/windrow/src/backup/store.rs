//! Where backups go: a store of named objects.
//!
//! The names are those of [`names`](super::names): letters, digits, points and hyphens, at most 80 bytes.

use std::fmt::Debug;

use crate::base::Result;

/// Bytes that come one piece after the other.
pub trait ByteSource {
    /// Fills the beginning of `buffer` with the next bytes and returns their number: 0 at the end, and if the buffer is
    /// empty.
    ///
    /// # Errors
    /// Those of the place that the bytes come from, or `Corruption`. The bytes so far are then not to be used.
    fn read(&mut self, buffer: &mut [u8]) -> Result<usize>;
}

/// An object of a store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredObject {
    /// The name.
    pub name: String,
    /// Its length in bytes; 0 if it is so damaged that it has none.
    pub length: u64,
}

/// A store of named objects, such as [`FolderStore`](super::FolderStore). An object is written once, as a whole, and
/// never changes.
///
/// An implementation for another place needs no knowledge of the objects. It promises:
/// - An object is there as a whole or not at all, also after a crash.
/// - What a call has done is durable when the call returns.
/// - What [`list`](Self::list) shows, and what it does not show, is durable before a later call changes anything. After an
///   error that leaves this open, an implementation refuses changes.
/// - A call ends: a place that may not answer needs a time-out. A close of the database waits for the call.
///
/// Nobody else changes the store meanwhile: an implementation for a place that several processes reach has a lock.
pub trait BackupStore: Send + Sync + Debug {
    /// Stores the bytes of `content` under `name`, in place of an object that has this name. A store may refuse that for names
    /// that do not end in `.piece`: only a process that has lost its lock meets others there.
    ///
    /// # Errors
    /// `NoSpace`, `Io`, or the error of `content`: then no object of the name is there, or the one from before.
    fn put(&self, name: &str, content: &mut dyn ByteSource) -> Result<()>;

    /// The bytes of the object `name`.
    ///
    /// # Errors
    /// `NotFound`; `Corruption` if it is so damaged that it has no bytes; `Io`.
    fn get(&self, name: &str) -> Result<Box<dyn ByteSource + '_>>;

    /// All objects, in no particular order. Other names than those of objects of backups may be among them.
    ///
    /// # Errors
    /// `Io`.
    fn list(&self) -> Result<Vec<StoredObject>>;

    /// Deletes the objects of these names, in any order; names that are not there count as deleted.
    ///
    /// # Errors
    /// `Io`: some of the objects may be there.
    fn delete(&self, names: &[String]) -> Result<()>;
}
