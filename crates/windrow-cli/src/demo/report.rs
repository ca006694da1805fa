//! The result of the demo.

use serde::Serialize;
use windrow::{LevelStats, Stats};

use super::KEYSPACE;
use super::check::Checks;
use super::input::Input;
use crate::amounts::whole;
use crate::text::{human_bytes, human_count};

/// The figures of a demo, as `--json` prints them.
#[derive(Debug, Default, Serialize)]
pub(super) struct Report {
    /// Files loaded.
    pub(super) entries: u64,
    /// Bytes of their keys and contents.
    pub(super) bytes: u64,
    pub(super) overwritten: u64,
    pub(super) deleted: u64,
    pub(super) skipped_large: u64,
    /// Comparisons made.
    pub(super) checked: u64,
    /// Comparisons that failed.
    pub(super) mismatches: u64,
    /// Batches that the killed process had acknowledged.
    pub(super) acknowledged: u64,
    /// Of these, batches found whole after the reopening.
    pub(super) recovered: u64,
    /// The settled tree of the first load.
    pub(super) levels: Vec<LevelStats>,
    /// Bytes written to files per byte given.
    pub(super) write_amplification: f64,
    /// Bytes on disk per byte of live keys and values.
    pub(super) space_amplification: f64,
    /// Blocks consulted per get. Half of the gets are of keys that never existed.
    pub(super) read_amplification: f64,
    pub(super) load_bytes_per_second: f64,
    pub(super) gets_per_second: f64,
    pub(super) scanned_entries_per_second: f64,
    pub(super) seconds: f64,
}

impl Report {
    pub(super) fn new(input: &Input) -> Self {
        Self {
            skipped_large: input.skipped_large,
            ..Self::default()
        }
    }

    /// Takes amplifications and levels over from a settled database.
    pub(super) fn measure(&mut self, stats: &Stats, live_bytes: u64) {
        self.write_amplification = stats.write_amplification();
        self.space_amplification = stats.disk_bytes as f64 / live_bytes.max(1) as f64;
        let keyspace = stats.keyspaces.iter().find(|one| one.name == KEYSPACE);
        self.levels = keyspace.map(|one| one.levels.clone()).unwrap_or_default();
    }

    pub(super) fn close(&mut self, checks: &Checks) {
        self.checked = checks.checked;
        self.mismatches = checks.mismatches;
    }

    /// The last lines for people.
    pub(super) fn summary(&self) -> String {
        format!(
            "amplify    written {:.2} times, stored {:.2} times, {:.2} blocks per get\n\
             speed      load {}/s, {} gets/s, {} scanned entries/s\n\
             checked    {} in {:.1} s\n\
             mismatches: {}",
            self.write_amplification,
            self.space_amplification,
            self.read_amplification,
            human_bytes(whole(self.load_bytes_per_second)),
            human_count(whole(self.gets_per_second)),
            human_count(whole(self.scanned_entries_per_second)),
            human_count(self.checked),
            self.seconds,
            self.mismatches,
        )
    }
}
