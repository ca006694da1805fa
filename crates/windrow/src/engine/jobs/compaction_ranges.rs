//! The range tombstones of a compaction: what they hide is not read, and parts end where they can be divided.
//!
//! Concurrency: that of the [compaction](super::compaction_job).

use std::sync::Arc;

use super::compaction_inputs::Inputs;
use crate::base::limits::KEY_BYTES_MAX;
use crate::base::range_tombstones::{is_below, largest_below};
use crate::base::sync::Shared;
use crate::base::{RangeTombstone, RangeTombstones, Result};
use crate::compact::merge::SubcompactionRange;
use crate::compact::ranges::JobRanges;
use crate::engine::Engine;
use crate::manifest::FileHandle;
use crate::policy::{ReadPoints, hides_all};

impl Engine {
    /// The range tombstones of `inputs`, each within the bounds of its segment.
    fn all_ranges(&self, inputs: &Inputs) -> Result<Vec<RangeTombstone>> {
        let mut all = Vec::new();
        let has_any = |file: &&Shared<FileHandle>| file.meta.range_tombstones() > 0;
        for file in inputs.files().filter(has_any) {
            let table = self.tables.get(file.slot(), &file.meta)?;
            let ranges = table.segments.iter().filter_map(|it| it.ranges.as_ref());
            all.extend(ranges.flat_map(|ranges| ranges.all()).cloned());
        }
        Ok(all)
    }

    /// The range tombstones of `inputs` in `part`.
    pub(super) fn ranges(
        &self,
        inputs: &Inputs,
        part: SubcompactionRange<'_>,
    ) -> Result<JobRanges> {
        if inputs.range_tombstones() == 0 {
            return Ok(JobRanges::default());
        }
        // The output stays within the bounds of the inputs, or of the part.
        let largest = inputs.files().map(|file| file.largest()).max();
        let limit = part.to.map(largest_below).or(largest).unwrap_or_default();
        Ok(JobRanges::new(self.all_ranges(inputs)?, part.from, limit))
    }

    /// `inputs` without the files of which range tombstones hide every entry from all `readers`: nobody needs to read
    /// them. Files that refer to value logs stay, because the job lists the values that it drops.
    pub(super) fn uncovered(
        &self,
        inputs: &Arc<Inputs>,
        readers: &ReadPoints,
    ) -> Result<Arc<Inputs>> {
        if inputs.range_tombstones() == 0 {
            return Ok(Arc::clone(inputs));
        }
        let ranges = RangeTombstones::new(self.all_ranges(inputs)?);
        let is_read = |file: &Shared<FileHandle>| {
            let meta = &file.meta;
            if meta.log_bytes() > 0 {
                return true;
            }
            let (oldest, newest) = (meta.sequence_min(), meta.sequence_max());
            let hiding = |key: &[u8]| {
                let next = ranges.next_newer(key, newest);
                next.filter(|range| hides_all(range.sequence, oldest, readers))
            };
            // Range by range, each from the end of the one before.
            let mut next = hiding(file.smallest());
            while let Some(range) = next {
                if is_below(file.largest(), &range.end) {
                    return false;
                }
                next = hiding(&range.end);
            }
            true
        };
        Ok(Arc::new(inputs.only(is_read)))
    }
}

/// How many bytes of 255 stand at the end of a key that is right before another one, or nearly.
const PART_END_BYTES: usize = 8;

/// An end of a subcompaction near `key`, a little before it, for range tombstones: what is right before the end is a key, up
/// to which the subcompaction covers all keys. The next one goes on with the end. `None` if there is no such key.
pub(super) fn part_end(key: &[u8]) -> Option<Box<[u8]>> {
    let (last, before) = key.split_last()?;
    if *last == 0 {
        return (!before.is_empty()).then(|| key.into());
    }
    let mut end = key.to_vec();
    *end.last_mut()? -= 1;
    end.extend_from_slice(&[u8::MAX; PART_END_BYTES]);
    end.push(0);
    (end.len() <= KEY_BYTES_MAX).then(|| end.into())
}

#[cfg(test)]
#[cfg(not(any(loom, shuttle)))]
mod tests {
    use super::{KEY_BYTES_MAX, part_end};

    #[test]
    fn a_part_ends_right_behind_a_key() {
        for key in [&b"k"[..], b"k\0", b"\x01", b"\0\0", b"long key"] {
            let end = part_end(key).unwrap();
            assert!(*end <= *key && end.ends_with(&[0]) && end.len() > 1);
        }
        assert_eq!(part_end(b"\0"), None);
        assert_eq!(part_end(&vec![7; KEY_BYTES_MAX]), None);
    }
}
