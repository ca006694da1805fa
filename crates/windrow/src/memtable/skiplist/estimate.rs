//! About how many entries a list has between two places.
//!
//! Half of the nodes of each lane are in the next one too. So the nodes of the highest lane that has some dozens of them
//! between the places are a random sample, and the sample has the mean count of leaves. A lane is left for the one below
//! while it has fewer nodes, so the count takes a few hundred steps, whatever the length of the list.
//!
//! The safety argument is that of the [list](super).

use super::SkipList;
use super::node::{Node, narrow};
use super::record::Target;
use crate::base::key::SEQUENCE_MAX;
use crate::base::sync::atomic::Ordering;
use crate::memtable::order::Order;

/// The nodes of a sample. With 64 the standard error of the estimate is about an eighth.
const SAMPLE: u64 = 64;

impl SkipList {
    /// About how many entries have keys from `from` to before `to`; `None` is no bound. No answer if they are at most a few
    /// thousand: a walk counts them.
    pub(in crate::memtable) fn entries_between(
        &self,
        from: Option<&[u8]>,
        to: Option<&[u8]>,
    ) -> Option<u64> {
        let from = self.place(from.unwrap_or_default());
        let to = to.map(|to| self.place(to));
        let is_before = |node: &Node<'_>| to.as_ref().is_none_or(|to| to.reaches(Some(*node)));
        let mut start = self.head();
        for lane in (0..self.height.load(Ordering::Relaxed)).rev() {
            // SAFETY: the head has all lanes; other nodes were met in this lane or above.
            (start, _) = unsafe { narrow(&from, lane, (start, None)) };
            let (mut nodes, mut entries) = (0, 0);
            let mut node = start;
            // SAFETY: as above.
            while let Some(next) = unsafe { node.next_in(lane) }.filter(is_before) {
                nodes += 1;
                entries += Order(next.leaf().order.load(Ordering::Acquire)).count() as u64;
                node = next;
            }
            if nodes >= SAMPLE {
                return Some(entries << lane);
            }
        }
        None
    }

    /// Before all versions of `key`.
    fn place<'key>(&self, key: &'key [u8]) -> Target<'key> {
        self.target(key, SEQUENCE_MAX)
    }
}
