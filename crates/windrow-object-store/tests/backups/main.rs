//! Backups in object stores: in memory, in a local folder, and at a server of the S3 protocol; failing requests; the lock.

#![expect(clippy::unwrap_used, reason = "a step that fails ends the test")]
#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "the tests look at files, and count beside the store"
)]

mod client;
mod common;
mod faults;
mod faulty;
mod life;
mod lock;
mod server;
