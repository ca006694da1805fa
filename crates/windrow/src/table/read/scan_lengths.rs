//! How many blocks recent scans have passed, so that the next ones ask for as many at once.
//!
//! A scan that reads block after block waits for the device at each, although the blocks lie side by side. Its first
//! request therefore has as many blocks as the scans before it have passed after their seeks, on average over the last
//! dozens, and a quarter more. Only cursors that find blocks on the device are counted and ask. Scans of one keyspace are
//! counted apart from others, and so are its levels: a level has as many blocks of a scan as it has data.
//!
//! Invariant: what seeks ask for in advance is about a quarter more than what scans have used, or a block a seek.
//!
//! Concurrency: that of [`RunningMean`](crate::base::running_mean::RunningMean).

use crate::base::KeyspaceId;
use crate::base::limits::LEVELS_MAX;
use crate::base::running_mean::KeyspaceMeans;

/// Level 0 and all below.
const LEVELS: usize = LEVELS_MAX + 1;

/// A request has a quarter more blocks than the mean.
const SLACK: f64 = 1.25;

/// The most blocks of a first request.
const BLOCKS_MAX: f64 = 64.0;

/// The means of all keyspaces.
#[derive(Debug, Default)]
pub(crate) struct ScanLengths(KeyspaceMeans<LEVELS>);

/// The scans of a keyspace in a level.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LevelScans {
    pub(crate) keyspace: KeyspaceId,
    pub(crate) level: usize,
}

impl ScanLengths {
    /// Notes that a cursor has passed `blocks` after a seek, the first one counted.
    pub(super) fn note(&self, scans: LevelScans, blocks: u32) {
        self.0.of(scans.keyspace, scans.level).note(blocks);
    }

    /// The blocks that a cursor should ask for at a seek; at least 1.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "between 1 and BLOCKS_MAX"
    )]
    pub(super) fn typical(&self, scans: LevelScans) -> usize {
        let mean = self.0.of(scans.keyspace, scans.level).get();
        (mean * SLACK).round().clamp(1.0, BLOCKS_MAX) as usize
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;

    #[test]
    fn a_request_follows_the_scans_of_its_keyspace_and_level() {
        let lengths = ScanLengths::default();
        let scans = |id, level| LevelScans {
            keyspace: KeyspaceId(id),
            level,
        };
        let [long, short, other] = [scans(1, 3), scans(1, 2), scans(2, 3)];
        assert_eq!(lengths.typical(long), 1);
        for _ in 0..100 {
            lengths.note(long, 5);
            lengths.note(short, 1);
        }
        assert_eq!(lengths.typical(long), 6);
        assert_eq!(lengths.typical(short), 1);
        assert_eq!(lengths.typical(other), 1);
        for _ in 0..100 {
            lengths.note(long, 1);
        }
        assert_eq!(lengths.typical(long), 1);
        for _ in 0..100 {
            lengths.note(long, 1 << 20);
        }
        assert_eq!(lengths.typical(long), 64);
    }
}
