//! What prepared transactions hold: keys and ranges that no commit of others may write.
//!
//! A prepared transaction is checked once, and commits later. So everything that it has read must still be current then.
//! The leader of the commits asks here before it lets a write through; that costs one load while nothing is held. Locks
//! alone would not do: most writers take none, and there are none for ranges.
//!
//! Invariants:
//! - I1: No prepared transaction writes what another one holds: neither a key nor a key of a range. [`Holds::add`]
//!   refuses it. So prepared transactions can commit in any order.
//!
//! Concurrency: one lock, held for a search among keys and [ranges](super::range_index); a leaf.

use std::cmp::Ordering::Less;
use std::collections::{BTreeMap, BTreeSet};
use std::mem;
use std::ops::Bound;
use std::sync::Arc;

use super::lock::excludes;
use super::range_index::{HeldRange, RangeIndex, compare_ends, compare_starts};
use super::{LockName, Mode, Owner};
use crate::base::sync::Mutex;
use crate::base::sync::atomic::{AtomicUsize, Ordering};
use crate::base::{KeyspaceId, MemoryTracker};
use crate::read::visible::{KeyRange, is_ordered};

/// About the memory of a hold beside its keys.
const OVERHEAD_BYTES: usize = 128;

/// What one transaction holds: alone what it writes, shared what it has only read.
#[derive(Debug, Default)]
pub(crate) struct Hold {
    pub(crate) keys: BTreeMap<LockName, Mode>,
    pub(crate) ranges: Vec<(KeyspaceId, KeyRange, Mode)>,
}

/// What all prepared transactions hold; see the module.
#[derive(Debug)]
pub(crate) struct Holds {
    /// The number of transactions that hold something.
    count: AtomicUsize,
    all: Mutex<All>,
    memory: Arc<MemoryTracker>,
}

#[derive(Debug, Default)]
struct All {
    /// The owners of each key. Several share it, or one has it alone.
    keys: BTreeMap<LockName, Vec<(Owner, Mode)>>,
    ranges: BTreeMap<KeyspaceId, RangeIndex>,
}

/// Somebody who wants to write or to hold.
#[derive(Debug, Clone, Copy)]
struct Wish {
    owner: Option<Owner>,
    mode: Mode,
}

impl Hold {
    /// Joins the ranges of a keyspace and mode that overlap, and forgets empty ones. A queue whose consumers each look for
    /// its first entry has as many ranges with one start; each search would go through all of them.
    pub(crate) fn join_ranges(&mut self) {
        self.ranges
            .retain(|(_, range, _)| is_ordered(range.bounds()));
        self.ranges.sort_by(|one, other| {
            let kinds = (one.0, one.2).cmp(&(other.0, other.2));
            kinds.then_with(|| compare_starts(&one.1.lower, &other.1.lower))
        });
        self.ranges.dedup_by(|next, joined| {
            let is_joined =
                (next.0, next.2) == (joined.0, joined.2) && !joined.1.ends_before(&next.1);
            if is_joined && compare_ends(&joined.1.upper, &next.1.upper) == Less {
                mem::swap(&mut joined.1.upper, &mut next.1.upper);
            }
            is_joined
        });
    }

    fn memory_bytes(&self) -> u64 {
        let keys = self.keys.keys().map(|name| name.key.len());
        let ranges = self.ranges.iter().map(|(_, range, _)| {
            let (lower, upper) = range.ends();
            lower.map_or(0, <[u8]>::len) + upper.map_or(0, <[u8]>::len)
        });
        let bytes = keys.chain(ranges).map(|bytes| bytes + OVERHEAD_BYTES);
        bytes.sum::<usize>() as u64
    }
}

impl Wish {
    fn meets(self, owner: Owner, mode: Mode) -> bool {
        self.owner != Some(owner) && excludes(self.mode, mode)
    }
}

impl All {
    /// Whether another owner holds the key so that `wish` is in the way.
    fn has_key(&self, name: &LockName, wish: Wish) -> bool {
        let owners = self.keys.get(name).map_or(&[][..], Vec::as_slice);
        let ranges = self.ranges.get(&name.keyspace);
        let is_met = |held: &HeldRange| wish.meets(held.owner, held.mode);
        owners.iter().any(|(owner, mode)| wish.meets(*owner, *mode))
            || ranges.is_some_and(|it| it.find_around(&name.key, is_met).is_some())
    }

    /// A key of `range`, or the beginning of a range over it, that another owner holds so that `wish` is in the way.
    fn find_in(&self, keyspace: KeyspaceId, range: &KeyRange, wish: Wish) -> Option<LockName> {
        if !is_ordered(range.bounds()) {
            return None;
        }
        let name = |key: &[u8]| LockName::new(keyspace, key);
        let lower = match &range.lower {
            Bound::Unbounded => Bound::Included(name(&[])),
            Bound::Included(key) => Bound::Included(name(key)),
            Bound::Excluded(key) => Bound::Excluded(name(key)),
        };
        let behind = self.keys.range((lower, Bound::Unbounded));
        let mut inside = behind
            .take_while(|(name, _)| name.keyspace == keyspace && range.is_below_upper(&name.key));
        let met = |owners: &[(Owner, Mode)]| owners.iter().any(|it| wish.meets(it.0, it.1));
        if let Some((name, _)) = inside.find(|(_, owners)| met(owners)) {
            return Some(name.clone());
        }
        let is_met = |held: &HeldRange| wish.meets(held.owner, held.mode);
        let found = self.ranges.get(&keyspace)?.find_over(range, is_met);
        found.map(|held| name(held.range.ends().0.unwrap_or_default()))
    }

    /// A key for which `hold` contradicts what others hold.
    fn contradiction(&self, owner: Owner, hold: &Hold) -> Option<LockName> {
        let wish = |mode| Wish {
            owner: Some(owner),
            mode,
        };
        let mut keys = hold.keys.iter();
        let key = keys.find(|(name, mode)| self.has_key(name, wish(**mode)));
        let mut ranges = hold.ranges.iter();
        key.map(|(name, _)| name.clone()).or_else(|| {
            ranges.find_map(|(keyspace, range, mode)| self.find_in(*keyspace, range, wish(*mode)))
        })
    }
}

impl Holds {
    /// Nothing is held. What will be is counted in `memory`.
    pub(crate) fn new(memory: &Arc<MemoryTracker>) -> Self {
        Self {
            count: AtomicUsize::new(0),
            all: Mutex::default(),
            memory: Arc::clone(memory),
        }
    }

    /// Adds what `owner` holds, which has the locks of all its keys.
    ///
    /// # Errors
    /// The key for which that contradicts what others hold (I1). Then nothing has changed.
    pub(crate) fn add(&self, owner: Owner, hold: &Hold) -> Result<(), LockName> {
        let mut all = self.all.lock();
        if let Some(name) = all.contradiction(owner, hold) {
            return Err(name);
        }
        for (name, mode) in &hold.keys {
            let owners = all.keys.entry(name.clone()).or_default();
            owners.push((owner, *mode));
        }
        let mut ranges: BTreeMap<KeyspaceId, Vec<HeldRange>> = BTreeMap::new();
        for (keyspace, range, mode) in hold.ranges.iter().cloned() {
            if is_ordered(range.bounds()) {
                let held = HeldRange { owner, range, mode };
                ranges.entry(keyspace).or_default().push(held);
            }
        }
        for (keyspace, ranges) in ranges {
            let index = all.ranges.entry(keyspace).or_default();
            index.add(ranges.into_iter());
        }
        self.memory.add(hold.memory_bytes());
        self.count.fetch_add(1, Ordering::Release);
        Ok(())
    }

    /// Removes what `owner` holds.
    pub(crate) fn remove(&self, owner: Owner, hold: &Hold) {
        let mut all = self.all.lock();
        for name in hold.keys.keys() {
            if let Some(owners) = all.keys.get_mut(name) {
                owners.retain(|it| it.0 != owner);
                if owners.is_empty() {
                    all.keys.remove(name);
                }
            }
        }
        // Once for each keyspace: it takes time for all ranges of the keyspace, and the leader of the commits waits.
        let keyspaces: BTreeSet<_> = hold.ranges.iter().map(|it| it.0).collect();
        for keyspace in keyspaces {
            if let Some(index) = all.ranges.get_mut(&keyspace) {
                index.remove(owner);
            }
        }
        all.ranges.retain(|_, index| !index.is_empty());
        self.memory.remove(hold.memory_bytes());
        self.count.fetch_sub(1, Ordering::Release);
    }

    /// Whether any prepared transaction exists.
    #[inline]
    pub(crate) fn is_any(&self) -> bool {
        self.count.load(Ordering::Acquire) > 0
    }

    /// The name of `key`, if another owner than `writer` forbids a write to it.
    pub(crate) fn forbids_key(
        &self,
        keyspace: KeyspaceId,
        key: &[u8],
        writer: Option<Owner>,
    ) -> Option<LockName> {
        let name = LockName::new(keyspace, key);
        let is_held = self.all.lock().has_key(&name, write_by(writer));
        is_held.then_some(name)
    }

    /// Something for which another owner than `writer` forbids a deletion of `range`.
    pub(crate) fn forbids_range(
        &self,
        keyspace: KeyspaceId,
        range: &KeyRange,
        writer: Option<Owner>,
    ) -> Option<LockName> {
        let all = self.all.lock();
        all.find_in(keyspace, range, write_by(writer))
    }
}

fn write_by(owner: Option<Owner>) -> Wish {
    Wish {
        owner,
        mode: Mode::Exclusive,
    }
}

#[cfg(test)]
#[cfg(not(any(loom, shuttle)))]
mod tests {
    use super::*;

    const KEYSPACE: KeyspaceId = KeyspaceId(1);

    fn hold(written: &[&str], read: &[&str], prefixes: &[&str]) -> Hold {
        let name = |key: &&str| LockName::new(KEYSPACE, key.as_bytes());
        let mut hold = Hold::default();
        let written = written.iter().map(|key| (name(key), Mode::Exclusive));
        let read = read.iter().map(|key| (name(key), Mode::Shared));
        hold.keys.extend(written.chain(read));
        let prefixes = prefixes.iter().map(|it| KeyRange::prefix(it.as_bytes()));
        let ranges = prefixes.map(|range| (KEYSPACE, range, Mode::Shared));
        hold.ranges.extend(ranges);
        hold
    }

    #[test]
    fn what_is_held_forbids_the_writes_of_others() {
        let holds = Holds::new(&Arc::default());
        let [one, other] = [1, 2].map(Owner);
        let forbids = |key: &str, writer| {
            holds
                .forbids_key(KEYSPACE, key.as_bytes(), writer)
                .is_some()
        };
        assert!(!holds.is_any() && !forbids("a", None));
        let first = hold(&["a"], &["r"], &["p"]);
        let second = hold(&[], &["r"], &["p"]);
        holds.add(one, &first).unwrap();
        holds.add(other, &second).unwrap();
        for key in ["a", "r", "p", "pz"] {
            assert!(forbids(key, None) && forbids(key, Some(other)), "{key}");
        }
        assert!(!forbids("a", Some(one)));
        assert!(
            forbids("r", Some(one)) && forbids("pz", Some(one)),
            "others have read it"
        );
        for key in ["b", "o", "q"] {
            assert!(!forbids(key, None), "{key}");
        }
        assert!(holds.forbids_key(KeyspaceId(2), b"a", None).is_none());
        holds.remove(other, &second);
        assert!(!forbids("r", Some(one)) && !forbids("pz", Some(one)) && forbids("r", None));
        holds.remove(one, &first);
        assert!(!holds.is_any() && !forbids("a", None));
        assert_eq!(holds.memory.bytes(), 0);
    }

    #[test]
    fn overlapping_ranges_of_one_owner_are_joined() {
        let key = |key: u8| Box::<[u8]>::from([key]);
        let ends = |lower: Bound<u8>, upper: Bound<u8>| KeyRange {
            lower: lower.map(key),
            upper: upper.map(key),
        };
        // Each consumer of a queue passes what those before it have removed.
        let mut queue = Hold::default();
        for last in [3, 1, 2, 9, 5] {
            let passed = ends(Bound::Included(1), Bound::Included(last));
            queue.ranges.push((KEYSPACE, passed, Mode::Shared));
        }
        let joined = ends(Bound::Included(1), Bound::Included(9));
        let others = [
            (KEYSPACE, joined.clone(), Mode::Exclusive),
            (KeyspaceId(2), joined.clone(), Mode::Shared),
            (
                KEYSPACE,
                ends(Bound::Excluded(9), Bound::Unbounded),
                Mode::Shared,
            ),
        ];
        queue.ranges.extend(others);
        let empty = ends(Bound::Included(7), Bound::Excluded(7));
        queue.ranges.push((KEYSPACE, empty, Mode::Exclusive));
        queue.join_ranges();
        assert_eq!(queue.ranges.len(), 4);
        assert_eq!(queue.ranges[0].1.bounds(), joined.bounds());
        // Exactly the same keys are held.
        for bounds in 0..81_u8 {
            let bound = |kind, key| match kind {
                0 => Bound::Included(key),
                1 => Bound::Excluded(key),
                _ => Bound::Unbounded,
            };
            let [one, other, third, fourth] = [bounds, bounds / 3, bounds / 9, bounds / 27];
            let ranges = [
                ends(bound(one % 3, 4), bound(other % 3, 8)),
                ends(bound(third % 3, 2), bound(fourth % 3, 4)),
                ends(bound(other % 3, 8), bound(third % 3, 9)),
            ];
            let mut hold = Hold::default();
            let held = ranges.clone().map(|range| (KEYSPACE, range, Mode::Shared));
            hold.ranges.extend(held);
            hold.join_ranges();
            for key in 0..12 {
                let has = |it: &KeyRange| it.is_above_lower(&[key]) && it.is_below_upper(&[key]);
                let is_held = hold.ranges.iter().any(|it| has(&it.1));
                assert_eq!(is_held, ranges.iter().any(has), "{key} {ranges:?}");
            }
        }
    }

    #[test]
    fn an_end_removes_the_ranges_of_a_keyspace_at_once() {
        let holds = Holds::new(&Arc::default());
        let other = hold(&[], &[], &["b"]);
        let mut ended = hold(&[], &[], &["a", "c", "d", "e"]);
        ended
            .ranges
            .push((KeyspaceId(2), KeyRange::ALL, Mode::Shared));
        holds.add(Owner(1), &ended).unwrap();
        holds.add(Owner(2), &other).unwrap();
        let changes = || holds.all.lock().ranges[&KEYSPACE].changes();
        let before = changes();
        holds.remove(Owner(1), &ended);
        assert_eq!(changes(), before + 1);
        assert_eq!(holds.all.lock().ranges.len(), 1);
    }

    // I1
    #[test]
    fn contradictions_are_refused_in_either_order() {
        let writer = hold(&["p5"], &[], &[]);
        for (reader, fits) in [
            (hold(&[], &["p5"], &[]), false),
            (hold(&["p5"], &[], &[]), false),
            (hold(&[], &[], &["p"]), false),
            (hold(&[], &[], &["p5"]), false),
            (hold(&[], &["p4"], &["p4", "p6", "o", "q"]), true),
            (hold(&["p4"], &[], &["z"]), true),
        ] {
            for [first, second] in [[&writer, &reader], [&reader, &writer]] {
                let holds = Holds::new(&Arc::default());
                holds.add(Owner(1), first).unwrap();
                let added = holds.add(Owner(2), second);
                assert_eq!(added.is_ok(), fits, "{second:?}");
            }
        }
    }

    // I1
    #[test]
    fn deleted_ranges_exclude_what_they_overlap() {
        let deletion = |start: &str, end: &str| {
            let range = KeyRange::from_start(start.as_bytes(), end.as_bytes());
            Hold {
                ranges: vec![(KEYSPACE, range, Mode::Exclusive)],
                ..Hold::default()
            }
        };
        let deleted = deletion("d", "g");
        for (other, fits) in [
            (hold(&["d"], &[], &[]), false),
            (hold(&[], &["f"], &[]), false),
            (hold(&["g", "c"], &["a"], &[]), true),
            (hold(&[], &[], &["e"]), false),
            (hold(&[], &[], &[""]), false),
            (hold(&[], &[], &["c", "g"]), true),
            (deletion("a", ""), false),
            (deletion("e", "f"), false),
            (deletion("a", "d"), true),
            (deletion("g", ""), true),
        ] {
            for [first, second] in [[&deleted, &other], [&other, &deleted]] {
                let holds = Holds::new(&Arc::default());
                holds.add(Owner(1), first).unwrap();
                assert_eq!(holds.add(Owner(2), second).is_ok(), fits, "{other:?}");
            }
            // Any write that a deletion of the range would change, and any deletion that changes what is held.
            let holds = Holds::new(&Arc::default());
            holds.add(Owner(1), &other).unwrap();
            let (_, range, _) = &deleted.ranges[0];
            let forbidden = holds.forbids_range(KEYSPACE, range, None);
            assert_eq!(forbidden.is_none(), fits);
            assert!(
                holds
                    .forbids_range(KEYSPACE, range, Some(Owner(1)))
                    .is_none()
            );
        }
    }

    #[test]
    fn bounds_of_ranges_are_exact() {
        let writer = hold(&["b"], &[], &[]);
        let bounds = |key: &str| {
            let key: Box<[u8]> = key.as_bytes().into();
            [
                Bound::Included(key.clone()),
                Bound::Excluded(key),
                Bound::Unbounded,
            ]
        };
        for lower in ["a", "b", "c"].iter().flat_map(|key| bounds(key)) {
            for upper in ["a", "b", "c"].iter().flat_map(|key| bounds(key)) {
                let range = KeyRange {
                    lower: lower.clone(),
                    upper,
                };
                let holds = Holds::new(&Arc::default());
                holds.add(Owner(1), &writer).unwrap();
                let has_key = range.is_above_lower(b"b") && range.is_below_upper(b"b");
                for (keyspace, fits) in [(KEYSPACE, !has_key), (KeyspaceId(0), true)] {
                    let reader = Hold {
                        ranges: vec![(keyspace, range.clone(), Mode::Shared)],
                        ..Hold::default()
                    };
                    assert_eq!(holds.add(Owner(2), &reader).is_ok(), fits, "{range:?}");
                    if fits {
                        holds.remove(Owner(2), &reader);
                    }
                }
            }
        }
    }
}
