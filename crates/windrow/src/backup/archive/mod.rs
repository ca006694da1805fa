//! The archive: the changes between backups, with which a restore reaches each state between them.
//!
//! A database that is archived has one *history*, named by a random number: its changes in the commit order, from the first
//! archiving on. The store gets them in *stretches*. A [`stretch`] is described by an object of its own, and its changes are
//! [`items`] in pieces. A backup of the history says how it is [bound](super::manifest::Binding) to it. [`histories`] sums up what a store has,
//! a [`route`] is a backup and the changes behind it up to a state.
//!
//! Invariants:
//! - I1. A stretch exists when its object does. All of its pieces are durable before.
//! - I2. The stretches of a history do not overlap. Where one begins behind the end of the one before, one is missing.
//! - I3. A state is restored only if the changes from the place of the backup's binding up to the state are there, and those
//!   up to the backup are the ones that its database has had.
//!
//! Concurrency: the caller keeps others from changing the store.

mod histories;
mod items;
mod route;
mod stretch;
#[cfg(test)]
mod tests;
mod writer;

pub(crate) use histories::{Archived, Histories, bases, list};
pub use histories::{Reachable, ReachableStates};
pub(crate) use items::{Item, RecordsDigest};
pub use route::{RestoreTo, Restored};
pub(crate) use route::{Route, check_base, find};
pub(crate) use stretch::{Note, STRETCH_BYTES_MAX, Stretch, each_item, of_stretch, read};
pub use writer::ArchiveReport;
pub(crate) use writer::StretchWriter;
