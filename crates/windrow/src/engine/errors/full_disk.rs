//! The events of a full disk: when the engine meets it, and when work resumes.
//!
//! Writers, jobs and the [reserve](super::reserve) each have a bit, since space for one does not imply space for
//! another. A job that succeeds clears the bit of jobs, and a write that succeeds the bit of writers. When the disk has
//! space for the reserve twice, the reserve clears its own bit and that of writers. The disk is no longer full when no
//! bit is set.
//!
//! Concurrency: one word. If two threads change it at the same time, the listener may receive their
//! events in either order.

use crate::base::sync::atomic::{AtomicU8, Ordering};
use crate::base::{ErrorKind, Result};
use crate::engine::Engine;
use crate::events::Event;

/// The users of space that have met the full disk and not succeeded since, as bits.
#[derive(Debug, Default)]
pub(in crate::engine) struct FullDisk(AtomicU8);

impl FullDisk {
    #[inline]
    fn holds(&self, bit: u8) -> bool {
        self.0.load(Ordering::Relaxed) & bit != 0
    }
}

/// A user of disk space.
#[derive(Debug, Clone, Copy)]
pub(in crate::engine) enum SpaceUser {
    Writers = 1,
    Jobs = 2,
}

/// The bit of the reserve, while it refuses writes that add data.
const RESERVE: u8 = 4;

impl Engine {
    /// Notes the outcome of work that needs space and may have released the reserve. The caller holds no
    /// lock.
    #[inline]
    pub(in crate::engine) fn note_space<T>(&self, who: SpaceUser, outcome: &Result<T>) {
        let bit = who as u8;
        match outcome {
            Err(error) if error.kind() == ErrorKind::NoSpace => self.note_full(bit),
            Ok(_) if self.full_disk.holds(bit) => self.note_space_freed(bit),
            _ => {}
        }
        self.note_reserve();
    }

    /// Notes the state of the reserve after it may have changed. The caller holds no lock.
    #[inline]
    pub(in crate::engine) fn note_reserve(&self) {
        match (self.full_disk.holds(RESERVE), self.reserve.is_full()) {
            (false, true) => self.note_full(RESERVE),
            // Space for the reserve twice is space for writers, too.
            (true, false) => self.note_space_freed(RESERVE | SpaceUser::Writers as u8),
            _ => {}
        }
    }

    #[cold]
    fn note_full(&self, bit: u8) {
        if self.full_disk.0.fetch_or(bit, Ordering::AcqRel) == 0 {
            self.observer.notify(|| Event::NoSpace);
        }
    }

    #[cold]
    fn note_space_freed(&self, bits: u8) {
        let before = self.full_disk.0.fetch_and(!bits, Ordering::AcqRel);
        if before != 0 && before & !bits == 0 {
            self.observer.notify(|| Event::SpaceResumed);
        }
    }
}
