//! Counts the work of reads of tables; the engine sums the counts.

/// Counts of one read, one cursor, or many.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct ReadCounters {
    /// Segments that were searched for a key.
    pub(crate) runs_probed: u64,
    /// Seeks of cursors.
    pub(crate) seeks: u64,
    /// Sorted runs of tables that the seeks positioned.
    pub(crate) runs_visited: u64,
    /// Blocks that were searched.
    pub(crate) block_reads: u64,
    /// Blocks that were read into the cache, or verified in a mapping.
    pub(crate) block_loads: u64,
    /// Stored bytes of the loaded blocks.
    pub(crate) block_load_bytes: u64,
    /// Filters that were probed.
    pub(crate) filter_probes: u64,
    /// Probes that rejected the key.
    pub(crate) filter_rejects: u64,
    /// Probes that passed an absent key.
    pub(crate) filter_false_positives: u64,
}

/// A point read on its way through the tables: what it has counted, and whether it may wait for a device.
#[derive(Debug, Default)]
pub(crate) struct PointRead {
    pub(crate) counters: ReadCounters,
    must_not_wait: bool,
    is_far: bool,
}

impl PointRead {
    /// A read that ends without an answer before it waits for a device.
    pub(crate) fn without_wait() -> Self {
        Self {
            must_not_wait: true,
            ..Self::default()
        }
    }

    /// Whether the read ends before it waits.
    #[inline]
    pub(crate) fn must_not_wait(&self) -> bool {
        self.must_not_wait
    }

    /// Whether the read has ended without an answer.
    #[inline]
    pub(crate) fn is_far(&self) -> bool {
        self.is_far
    }

    /// Ends the read without an answer.
    #[cold]
    pub(crate) fn end(&mut self) {
        self.is_far = true;
    }

    /// Ends the read, in front of a step that may wait, if it must not wait. Returns whether it did.
    #[inline]
    pub(crate) fn ends_here(&mut self) -> bool {
        self.is_far |= self.must_not_wait;
        self.is_far
    }
}

impl ReadCounters {
    /// Adds `other` to this.
    pub(crate) fn add(&mut self, other: &Self) {
        self.runs_probed += other.runs_probed;
        self.seeks += other.seeks;
        self.runs_visited += other.runs_visited;
        self.block_reads += other.block_reads;
        self.block_loads += other.block_loads;
        self.block_load_bytes += other.block_load_bytes;
        self.filter_probes += other.filter_probes;
        self.filter_rejects += other.filter_rejects;
        self.filter_false_positives += other.filter_false_positives;
    }
}
