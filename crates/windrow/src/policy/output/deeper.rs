//! Which keys deeper levels may hold, so that a compaction keeps the tombstones that hide them.

use std::borrow::{Borrow, Cow};

use crate::base::FileNumber;
use crate::policy::summary::{Claim, FileSummary};
use crate::policy::tree::Tree;

/// Answers whether a level below a compaction's target, or a file that it appends to, may hold a key. Keys ascend.
///
/// Each level keeps a position that only moves forward, so a whole compaction costs one walk.
#[derive(Debug)]
pub(crate) struct DeeperLevels<K> {
    levels: Vec<Level<K>>,
}

#[derive(Debug)]
struct Level<K> {
    ranges: Vec<(K, K)>,
    position: usize,
}

impl<K: Ord + Clone> DeeperLevels<K> {
    /// For the compaction that claims `claim` in `tree`, the tree that it started from, and appends to `targets`.
    ///
    /// It stays right while the compaction runs: what other jobs bring into deeper levels meanwhile comes from files
    /// that do not overlap the inputs of this one.
    pub(crate) fn new(tree: &dyn Tree<K>, claim: &Claim<K>, targets: &[FileNumber]) -> Self {
        let levels = (claim.level..tree.depth()).map(|level| {
            let within = tree.overlapping(level, &claim.smallest, &claim.largest);
            let within = tree.files(level, within);
            let counts = |file: &&Cow<'_, FileSummary<K>>| {
                level > claim.level || targets.contains(&file.number)
            };
            let ranges = within.iter().filter(counts);
            Level {
                ranges: ranges
                    .map(|file| (file.smallest.clone(), file.largest.clone()))
                    .collect(),
                position: 0,
            }
        });
        Self {
            levels: levels.collect(),
        }
    }

    /// Whether a file may hold `key`, which is not less than any key asked before.
    pub(crate) fn may_hold<Q: Ord + ?Sized>(&mut self, key: &Q) -> bool
    where
        K: Borrow<Q>,
    {
        self.first_from(key, |smallest| smallest <= key)
    }

    /// Whether a file may hold a key from `start`, which is not less than any key asked before, to before `end`.
    pub(crate) fn may_overlap<Q: Ord + ?Sized>(&mut self, start: &Q, end: &Q) -> bool
    where
        K: Borrow<Q>,
    {
        self.first_from(start, |smallest| smallest < end)
    }

    /// Whether `holds` is true of the smallest key of any level's first file that ends at `key` or behind it.
    fn first_from<Q: Ord + ?Sized>(&mut self, key: &Q, holds: impl Fn(&Q) -> bool) -> bool
    where
        K: Borrow<Q>,
    {
        self.levels.iter_mut().any(|level| {
            let rest = &level.ranges[level.position..];
            level.position += rest
                .iter()
                .take_while(|(_, largest)| largest.borrow() < key)
                .count();
            level
                .ranges
                .get(level.position)
                .is_some_and(|(smallest, _)| holds(smallest.borrow()))
        })
    }
}
