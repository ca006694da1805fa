//! Encryption at rest for [Windrow](windrow): a file system whose files are encrypted and authenticated.
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! # let folder = folder.path();
//! use std::sync::Arc;
//! use windrow::vfs::OsVfs;
//! use windrow::{Db, Options};
//! use windrow_encryption::{EncryptedVfs, Key, KeyRing};
//!
//! // From a safe place: without it the data are lost.
//! let key = Key::random()?;
//! let keys = KeyRing::new("2026-11", key);
//! let vfs = EncryptedVfs::new(Arc::new(OsVfs), Arc::new(keys));
//! let db = Db::open(folder, Options::default().with_vfs(Arc::new(vfs)))?;
//! db.keyspace("main")?.insert("key", "value")?;
//! db.close()?;
//! # Ok(())
//! # }
//! ```
//!
//! Each file has keys of its own, which come from the named key and the salt of the file. Each 480 bytes of a file are encrypted
//! and authenticated by ChaCha20-Poly1305 (RFC 8439), together with their place. So nobody without the key can read a file, change
//! it, or put a part of it elsewhere, without an error of the engine: damage of a checksum. A changed part reads as bytes that
//! nobody can foresee, so an attacker does not choose what the checksum is held against.
//!
//! What stays visible, and what an attacker with access to the files can do without the key:
//! - Names, sizes, numbers and times of files: how many keys and bytes there are about, when and where in the tree something is
//!   written, how long each write to a log is.
//! - `LOCK`: the number and the name of the process.
//! - Putting back an older state: of the whole folder, of the end of a log that is not closed, or of a cell of a file that was
//!   written several times. Removing files is found, except logs that nothing durable names yet.
//! - What is in memory: keys, blocks and memtables are in clear there.
//!
//! Blocks are not mapped: [`BlockSource::Mapped`](windrow::BlockSource::Mapped) means `Buffered` here, so give
//! [`cache_bytes`](windrow::Options::cache_bytes) memory. Files take a fifteenth more.

#![expect(
    clippy::disallowed_types,
    reason = "the locks of the engine's facade belong to the engine"
)]

mod context;
mod file;
mod keys;
mod sector;
mod vfs;

pub use keys::{KEY_BYTES, KEY_NAME_BYTES_MAX, Key, KeyProvider, KeyRing};
pub use vfs::{EncryptedVfs, is_encrypted};
