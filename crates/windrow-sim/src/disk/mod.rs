//! A simulated disk whose file system promises exactly what [`windrow::vfs`] lets the engine rely on,
//! and breaks everything else on request.
//!
//! - *Crashes*: [`SimDisk::crash`] is the disk after a power failure. What was synced is there. Of the
//!   rest, each sector, each length and each name is applied or lost on its own. What a process saw
//!   survives [`SimDisk::end_process`].
//! - *States*: [`SimDisk::on_change`] shows the whole state after every I/O that changes it, as an
//!   [`Image`]. An image costs little to keep, so one run of a history yields all its crashes.
//! - *Faults*: a plan of [`Fault`]s, a quota in bytes, damage planted in stored bytes or in a live
//!   mapping. [`SimDisk::fault_log`] lists the faults that happened.
//! - *Page cache*: which pages are in memory, as jobs ask for it ([`SimDisk::resident_pages`]).
//! - *Rules of use*: the removal of a protected file panics, and so does the removal of a file in use
//!   if that is forbidden.
//!
//! Concurrency: one lock protects everything, and operations are atomic. Observers run under that lock
//! and must not use the disk.

mod bytes;
mod crash;
mod directory;
mod faults;
mod file;
mod image;
mod inode;
mod page_cache;
mod region;
mod sim_disk;
mod state;
mod vfs;

pub use bytes::SECTOR_BYTES;
pub use crash::CrashPolicy;
pub use faults::{AfterFailedSync, Effect, Fault, OperationKind, Repeat};
pub use image::Image;
pub use sim_disk::SimDisk;
pub use state::Event;

#[cfg(test)]
mod tests;
