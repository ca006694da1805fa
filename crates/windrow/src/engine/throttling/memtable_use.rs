//! The memory of memtables: how much active and frozen ones hold, and which one to flush early.
//!
//! Concurrency: any thread may ask; states are loaded without a lock.

use std::sync::Arc;

use super::memory::MemoryUse;
use crate::base::sync::atomic::Ordering;
use crate::engine::{Engine, KeyspaceCore};

/// The memory of memtables that hold entries, and the one to flush if it is too much.
#[derive(Debug, Default)]
pub(super) struct MemtableUse {
    pub(super) active: u64,
    pub(super) frozen: u64,
    largest: Option<(u64, Arc<KeyspaceCore>)>,
}

impl Engine {
    /// The memory that the database holds.
    pub(crate) fn memory(&self) -> MemoryUse {
        self.memory.in_use(&self.tables.context().cache)
    }

    /// The use of active and frozen memtables. Others that are still counted are kept by cursors or
    /// by handles of dropped keyspaces; they throttle no writer.
    pub(super) fn memtable_use(&self) -> MemtableUse {
        let mut used = MemtableUse::default();
        for keyspace in self.keyspaces.load().iter() {
            let state = keyspace.state();
            for frozen in &state.frozen {
                used.frozen += frozen.memtable.allocated_bytes() as u64;
            }
            // An empty memtable holds little, and no flush would free it.
            if !state.active.is_empty() {
                let bytes = state.active.allocated_bytes() as u64;
                used.active += bytes;
                if used
                    .largest
                    .as_ref()
                    .is_none_or(|(largest, _)| *largest < bytes)
                {
                    used.largest = Some((bytes, Arc::clone(keyspace)));
                }
            }
        }
        used
    }

    /// The keyspace to flush early: the one with the largest active memtable, if all active ones together
    /// have half of the memtables' part. Frozen memtables have the other half. So a flush is due whenever
    /// memtables have used up their part.
    pub(in crate::engine) fn largest_memtable(&self) -> Option<Arc<KeyspaceCore>> {
        let half = self.memory.memtables_max / 2;
        if self.memory.memtables.bytes() <= half {
            return None;
        }
        let used = self.memtable_use();
        let (_, keyspace) = used.largest.filter(|_| used.active > half)?;
        Some(keyspace)
    }

    /// Whether the shared throttle was computed for the current memory use.
    #[inline]
    pub(super) fn is_memtable_use_current(&self) -> bool {
        self.memory.memtables.bytes()
            == self
                .background
                .measured_memtable_bytes
                .load(Ordering::Relaxed)
    }
}
