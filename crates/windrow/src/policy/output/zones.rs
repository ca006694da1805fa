//! Which file each key of a compaction's output goes to.
//!
//! I1. The keys that go to one file come without a gap: at each key the destination is the previous one, or
//!     one that has received no key yet. So a file is opened once, and ranges of files stay disjoint.

use std::borrow::Borrow;

use crate::base::FileNumber;
use crate::policy::summary::FileSummary;

/// The keys between two files that are appended to get a file of their own if they have at least a target
/// file divided by this. Fewer bytes go to the file before them.
const GAP_PART_MIN: u64 = 4;

/// A part of the output of a compaction that goes to one place.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Zone<K> {
    begins: Begin<K>,
    /// The file that it is appended to; new files where absent.
    target: Option<FileNumber>,
    /// The cut bytes of the files that are rewritten into it; then of each new file.
    bytes: u64,
}

/// The first key of a zone.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Begin<K> {
    Anywhere,
    At(K),
    After(K),
}

impl<K> Begin<K> {
    fn key(&self) -> Option<&K> {
        match self {
            Self::Anywhere => None,
            Self::At(key) | Self::After(key) => Some(key),
        }
    }
}

/// Decides, key by key, which file the output of a compaction goes to.
#[derive(Debug)]
pub(crate) struct Zones<K> {
    /// At least one.
    zones: Vec<Zone<K>>,
    /// The zone of the last key asked.
    present: usize,
}

impl<K: Ord + Clone> Zones<K> {
    /// For a compaction that rewrites or appends to the files `lower` of one level, sorted: it appends to those in
    /// `targets`. It puts values in transient logs in place or leaves them there. `upper_bytes` estimates how many of
    /// the [cut bytes](FileSummary::merged_cut_bytes) of its upper files lie between two keys, or from an end on. A
    /// target file of the level has `file_bytes` of them.
    pub(crate) fn new(
        lower: &[&FileSummary<K>],
        targets: &[FileNumber],
        (file_bytes, is_in_place): (u64, bool),
        upper_bytes: impl Fn(Option<&K>, Option<&K>) -> u64,
    ) -> Self {
        let is_wide = |from, to| upper_bytes(from, to) >= file_bytes / GAP_PART_MIN;
        let target = |file: &FileSummary<K>| Some(file.number).filter(|it| targets.contains(it));
        let zone = |begins, target| Zone {
            begins,
            target,
            bytes: 0,
        };
        let after = |file: &FileSummary<K>| Begin::After(file.largest.clone());
        let mut zones: Vec<Zone<K>> = Vec::new();
        let mut before: Option<&FileSummary<K>> = None;
        for &file in lower {
            let own = target(file);
            match before {
                None => {
                    let is_apart = own.is_some() && is_wide(None, Some(&file.smallest));
                    zones.push(zone(Begin::Anywhere, own.filter(|_| !is_apart)));
                }
                Some(before) if target(before).is_some() => {
                    let is_apart =
                        own.is_none() || is_wide(Some(&before.largest), Some(&file.smallest));
                    if is_apart {
                        zones.push(zone(after(before), None));
                    }
                }
                Some(_) => {}
            }
            if zones.last().is_some_and(|zone| zone.target != own) {
                zones.push(zone(Begin::At(file.smallest.clone()), own));
            }
            if let Some(zone) = zones.last_mut() {
                zone.bytes = zone
                    .bytes
                    .saturating_add(file.merged_cut_bytes(is_in_place));
            }
            before = Some(file);
        }
        match before {
            None => zones.push(zone(Begin::Anywhere, None)),
            Some(last) if target(last).is_some() && is_wide(Some(&last.largest), None) => {
                zones.push(zone(after(last), None));
            }
            Some(_) => {}
        }
        for position in 0..zones.len() {
            let end = zones.get(position + 1).and_then(|next| next.begins.key());
            let zone = &zones[position];
            let upper = upper_bytes(zone.begins.key(), end);
            zones[position].bytes = even_bytes(zone.bytes.saturating_add(upper), file_bytes);
        }
        Self { zones, present: 0 }
    }

    /// New files of `file_bytes` for all keys.
    pub(crate) fn one(file_bytes: u64) -> Self {
        let zone = Zone {
            begins: Begin::Anywhere,
            target: None,
            bytes: file_bytes,
        };
        Self {
            zones: vec![zone],
            present: 0,
        }
    }

    /// Goes to the zone of `key`, and returns whether that is another one. Keys ascend.
    pub(crate) fn go_to<Q: Ord + ?Sized>(&mut self, key: &Q) -> bool
    where
        K: Borrow<Q>,
    {
        let has_begun = |zone: &Zone<K>| match &zone.begins {
            Begin::Anywhere => true,
            Begin::At(first) => first.borrow() <= key,
            Begin::After(last) => last.borrow() < key,
        };
        let before = self.present;
        while self.zones.get(self.present + 1).is_some_and(has_begun) {
            self.present += 1;
        }
        before < self.present
    }

    /// The file that the present zone is appended to; none if it goes to new files.
    pub(crate) fn target(&self) -> Option<FileNumber> {
        self.zones[self.present].target
    }

    /// The length of a new file in the present zone.
    pub(crate) fn file_bytes(&self) -> u64 {
        self.zones[self.present].bytes
    }
}

/// The bytes of a file if `total` are written to files of about `file_bytes`, all of the same length.
fn even_bytes(total: u64, file_bytes: u64) -> u64 {
    let files = total.saturating_add(file_bytes / 2) / file_bytes.max(1);
    total.div_ceil(files.max(1)).max(1)
}
