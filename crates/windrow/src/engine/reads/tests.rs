//! Reads with concurrent writers, and the tombstone spans that they record.

#![cfg(not(any(loom, shuttle)))]

use std::collections::BTreeSet;
use std::ops::Bound;

use super::super::{Access, Handle, Write};
use super::*;
use crate::base::Kind;
use crate::options::{Durability, Options};
use crate::read::tombstone_spans::ReadPoint;

/// A queue after twenty entries were taken; keys 30 and 99 are left.
struct Queue {
    handle: Handle,
    keyspace: Arc<KeyspaceCore>,
    _directory: tempfile::TempDir,
}

impl Queue {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let handle = Handle::open(directory.path(), Options::default(), Access::ReadWrite).unwrap();
        let keyspace = handle.engine().open_keyspace("queue", None).unwrap();
        let queue = Self {
            handle,
            keyspace,
            _directory: directory,
        };
        for key in 0..20 {
            queue.write(key, Kind::Value);
            queue.write(key, Kind::Tombstone);
        }
        queue.write(30, Kind::Value);
        queue.write(99, Kind::Value);
        queue
    }

    fn write(&self, key: u8, kind: Kind) {
        let write = Write::One {
            keyspace: &self.keyspace,
            kind,
            key: &[key],
            value: &[],
        };
        let engine = self.handle.engine();
        engine.commit(&write, Durability::Buffered).unwrap();
    }

    fn view(&self) -> StateView {
        self.handle
            .engine()
            .state_view(&self.keyspace, None)
            .unwrap()
    }

    /// The view of a reader that is held between taking the state and taking its sequence number, while
    /// memtables rotate and `write` runs.
    fn view_held_during(&self, write: impl FnOnce()) -> StateView {
        let before = self.view();
        let engine = self.handle.engine();
        engine.rotate(std::slice::from_ref(&self.keyspace)).unwrap();
        write();
        let sequence = engine.visible.load(Ordering::Acquire);
        StateView { sequence, ..before }
    }
}

/// The first key, after two seeks.
fn first(view: &StateView) -> u8 {
    let mut cursor = view.cursor(KeyRange::ALL);
    assert!(cursor.moving().seek_to_first().unwrap());
    assert!(cursor.moving().seek_to_first().unwrap());
    cursor.key()[0]
}

#[test]
fn a_reader_with_an_older_state_records_no_tombstone_span() {
    let queue = Queue::new();
    let held = queue.view_held_during(|| queue.write(5, Kind::Value));
    assert_eq!(first(&held), 30);
    assert_eq!(first(&queue.view()), 5);
}

#[test]
fn a_reader_with_an_older_state_skips_none_of_its_keys() {
    let queue = Queue::new();
    let held = queue.view_held_during(|| {
        queue.write(40, Kind::Value);
        queue.write(30, Kind::Tombstone);
        assert_eq!(first(&queue.view()), 40);
    });
    // Its state does not contain key 40. It must see key 30, as before both writes.
    assert_eq!(first(&held), 30);
}

#[test]
fn an_empty_queue_is_passed_only_once() {
    let queue = Queue::new();
    queue.write(30, Kind::Tombstone);
    queue.write(99, Kind::Tombstone);
    for range in [KeyRange::ALL, KeyRange::prefix(&[19])] {
        let view = queue.view();
        let mut cursor = view.cursor(range.clone());
        let from = range.ends().0.unwrap_or(&[]).to_vec();
        for _ in 0..2 {
            assert!(!cursor.moving().seek_to_first().unwrap());
            assert!(!cursor.moving().next().unwrap());
            assert!(!cursor.moving().prev().unwrap());
        }
        let read_point = ReadPoint {
            sequence: view.sequence,
            complete: view.sequence,
        };
        let span = queue.keyspace.tombstones.around(&from, read_point);
        assert_eq!(span.unwrap().to(), [99]);
    }
    // After the tombstone span, at its end, and inside it.
    for key in [100, 99, 5] {
        queue.write(key, Kind::Value);
        assert_eq!(first(&queue.view()), key);
    }
}

/// A step passes the older versions of its key before deleted keys.
#[test]
fn a_step_does_not_remember_the_key_that_it_leaves() {
    let queue = Queue::new();
    for _ in 0..300 {
        queue.write(0, Kind::Value);
    }
    let view = queue.view();
    for _ in 0..2 {
        let mut cursor = view.cursor(KeyRange::ALL);
        assert!(cursor.moving().seek_to_first().unwrap());
        assert_eq!(cursor.key(), [0]);
        assert!(cursor.next().unwrap());
        assert_eq!(cursor.key(), [30]);
        assert!(cursor.prev().unwrap());
        assert_eq!(cursor.key(), [0]);
    }
    assert_eq!(first(&view), 0);
    // The step has remembered the others.
    let read_point = ReadPoint {
        sequence: view.sequence,
        complete: view.sequence,
    };
    let span = queue.keyspace.tombstones.around(&[1], read_point);
    assert_eq!(span.unwrap().to(), [30]);
}

/// Cursors of the newest state and of snapshots agree with a sorted map, whatever is written, deleted
/// and frozen between them.
#[test]
fn seeks_agree_with_a_sorted_map() {
    let queue = Queue::new();
    let engine = queue.handle.engine();
    let mut state = 11_u64;
    let mut below = |end: u8| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        u8::try_from((state >> 33) % u64::from(end)).unwrap()
    };
    let mut now: BTreeSet<u8> = [30, 99].into();
    let mut views = Vec::new();
    for step in 0..20_000 {
        let key = below(100);
        match below(20) {
            0..4 => {
                queue.write(key, Kind::Value);
                now.insert(key);
            }
            4..7 => {
                // Deletes as a queue does, from the front, or from anywhere.
                for key in key.min(70)..key.min(70) + 25 {
                    queue.write(key, Kind::Tombstone);
                    now.remove(&key);
                }
            }
            7 if step % 40 == 0 => {
                let keyspace = std::slice::from_ref(&queue.keyspace);
                engine.rotate(keyspace).unwrap();
            }
            8 => {
                let sequence = engine.visible.load(Ordering::Acquire);
                let at = SnapshotPoint {
                    sequence,
                    moment: 0,
                };
                let view = engine.state_view(&queue.keyspace, Some(at)).unwrap();
                views.push((view, now.clone()));
                views.truncate(4);
            }
            9 if !views.is_empty() => {
                views.swap_remove(0);
            }
            _ => {
                let choice = usize::from(below(8));
                let fresh = (queue.view(), now.clone());
                let (view, expected) = views.get(choice).unwrap_or(&fresh);
                let upper = key.saturating_add(below(60));
                let mut range = KeyRange::ALL;
                if below(2) == 0 {
                    range.lower = Bound::Included([key].into());
                }
                if below(2) == 0 {
                    range.upper = Bound::Included([upper].into());
                }
                let lower = range.ends().0.map_or(0, |key| key[0]);
                let upper = range.ends().1.map_or(u8::MAX, |key| key[0]);
                let mut cursor = view.cursor(range);
                if below(2) == 0 {
                    let wanted = || expected.range(lower..=upper);
                    let found = cursor.moving().seek_to_last().unwrap();
                    assert_eq!(found, wanted().next().is_some(), "step {step}");
                    for key in wanted().rev() {
                        assert_eq!(cursor.key(), [*key], "step {step}");
                        cursor.moving().prev().unwrap();
                    }
                    assert!(!cursor.is_valid());
                    cursor.moving().seek_to_first().unwrap();
                    for key in wanted() {
                        assert_eq!(cursor.key(), [*key], "step {step}");
                        cursor.next().unwrap();
                    }
                    assert!(!cursor.is_valid());
                }
                for from in [None, Some(upper / 2), Some(lower.saturating_add(1))] {
                    let found = match from {
                        None => cursor.moving().seek_to_first(),
                        Some(from) => cursor.moving().seek(&[from]),
                    };
                    let from = from.unwrap_or(0).max(lower);
                    let wanted = (from <= upper)
                        .then(|| expected.range(from..=upper).next())
                        .flatten();
                    assert_eq!(found.unwrap(), wanted.is_some(), "step {step}");
                    if let Some(wanted) = wanted {
                        assert_eq!(cursor.key(), [*wanted], "step {step}");
                        let before = expected.range(lower..*wanted).next_back();
                        assert_eq!(cursor.moving().prev().unwrap(), before.is_some());
                        if let Some(before) = before {
                            assert_eq!(cursor.key(), [*before], "step {step}");
                            assert!(cursor.moving().next().unwrap());
                            assert_eq!(cursor.key(), [*wanted], "step {step}");
                        }
                    }
                }
            }
        }
    }
}
