//! Backups of [Windrow](windrow) in an object store: S3, Google Cloud Storage, Azure, or whatever else the crate
//! [`object_store`] reaches.
//!
//! A [`Bucket`] is a prefix of a store. A [`BucketStore`] has it open, and [`Backups`](windrow::backup::Backups) use it as they
//! use a folder. `docs/backup.md` says what a store must promise, and what is weaker than in a folder.
//!
//! ```
//! # fn main() -> windrow::Result<()> {
//! # let folder = tempfile::tempdir().unwrap();
//! # let path = folder.path();
//! use std::sync::Arc;
//! use object_store::memory::InMemory;
//! use windrow::backup::Backups;
//! use windrow::{Db, Options};
//! use windrow_object_store::{Bucket, BucketStore};
//!
//! // Or `AmazonS3Builder::from_env().with_bucket_name("backups").build()?`, with the feature `aws`.
//! let objects = Arc::new(InMemory::new());
//! let bucket = Bucket::new(objects, "shop")?;
//!
//! let db = Db::open(path.join("db"), Options::default())?;
//! db.keyspace("users")?.insert("ada", "mathematician")?;
//! let backups = Backups::new(Arc::new(BucketStore::open(&bucket, "shop on host-1")?));
//! let made = db.backup(&backups)?;
//! drop(backups);
//!
//! let backups = Backups::new(Arc::new(BucketStore::open_read_only(&bucket)));
//! backups.restore(made.number, path.join("restored"))?;
//! # db.close()
//! # }
//! ```
//!
//! All calls block. A task of an asynchronous runtime may make them, and holds its thread up meanwhile:
//! `tokio::task::spawn_blocking` is better. Give the [`Bucket`] a client of its own: if a runtime with one thread has the same one,
//! a task that waits here may wait for a connection that only its own thread drives.

mod bucket;
mod download;
mod lock;
mod requests;
mod store;

pub use bucket::Bucket;
pub use store::BucketStore;
