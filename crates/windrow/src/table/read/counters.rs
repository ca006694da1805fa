//! What reads of tables cost, counted where it happens and summed by the engine.

/// Counts of one read, one cursor, or many.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct ReadCounters {
    /// Segments asked for a key.
    pub(crate) runs_probed: u64,
    /// Moves of cursors to any place.
    pub(crate) seeks: u64,
    /// Runs of tables that were gone to for them.
    pub(crate) runs_visited: u64,
    /// Blocks consulted.
    pub(crate) block_reads: u64,
    /// Blocks that were not at hand: read into the cache, or touched in a mapping for the first
    /// time.
    pub(crate) block_loads: u64,
    /// Stored bytes of the loaded blocks.
    pub(crate) block_load_bytes: u64,
    /// Filters asked.
    pub(crate) filter_probes: u64,
    /// Filters that said no.
    pub(crate) filter_rejects: u64,
    /// Filters that said maybe where the key was absent.
    pub(crate) filter_false_positives: u64,
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
