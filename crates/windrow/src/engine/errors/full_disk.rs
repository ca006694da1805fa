//! What the engine tells a listener of a full disk: when it is met, and when work goes on.
//!
//! Writers, jobs and the [reserve](super::reserve) are looked at apart, since room for one says nothing
//! of the others: the disk is no longer full when jobs that met it have succeeded again, and there is
//! room for the reserve twice, which is room for writers, too. Where there is no reserve, writers tell
//! by the next write that succeeds.
//!
//! Concurrency: one word; events of threads that change it at the same time may be told in either
//! order.

use crate::base::sync::atomic::{AtomicU8, Ordering};
use crate::base::{ErrorKind, Result};
use crate::engine::Engine;
use crate::events::Event;

/// Who has met the full disk and not succeeded since, as bits.
#[derive(Debug, Default)]
pub(in crate::engine) struct FullDisk(AtomicU8);

impl FullDisk {
    #[inline]
    fn holds(&self, bit: u8) -> bool {
        self.0.load(Ordering::Relaxed) & bit != 0
    }
}

/// Who needs room.
#[derive(Debug, Clone, Copy)]
pub(in crate::engine) enum SpaceUser {
    Writers = 1,
    Jobs = 2,
}

/// The bit of the reserve, while it refuses what adds data.
const RESERVE: u8 = 4;

impl Engine {
    /// Looks at how work ended that needs room, and may have given up the reserve. The caller holds no
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

    /// Looks at the reserve, which may have been given up or taken. The caller holds no lock.
    #[inline]
    pub(in crate::engine) fn note_reserve(&self) {
        match (self.full_disk.holds(RESERVE), self.reserve.is_full()) {
            (false, true) => self.note_full(RESERVE),
            // Room for it twice is room for writers, who may wait to hear of it.
            (true, false) => self.note_space_freed(RESERVE | SpaceUser::Writers as u8),
            _ => {}
        }
    }

    #[cold]
    fn note_full(&self, bit: u8) {
        if self.full_disk.0.fetch_or(bit, Ordering::AcqRel) == 0 {
            self.options.listener.tell(|| Event::NoSpace);
        }
    }

    #[cold]
    fn note_space_freed(&self, bits: u8) {
        let before = self.full_disk.0.fetch_and(!bits, Ordering::AcqRel);
        if before != 0 && before & !bits == 0 {
            self.options.listener.tell(|| Event::SpaceResumed);
        }
    }
}
