//! Loom models of the memtable, over the real types.
//!
//! ```text
//! RUSTFLAGS="--cfg loom" LOOM_MAX_PREEMPTIONS=3 \
//!     cargo test --release -p windrow --lib --target-dir target/loom models
//! ```
//!
//! Readers run in threads of their own, since loom does not go back over loads of the main thread.

use super::arena::{Arena, CHUNK_BYTES_MIN};
use super::skiplist::{height_of, random_of};
use super::{Memtable, MemtableCursor};
use crate::base::key::SEQUENCE_MAX;
use crate::base::{Cursor, Kind, Trailer};
use loom::thread;
use std::sync::Arc;

fn insert(memtable: &Memtable, key: &[u8], sequence: u64) {
    memtable.insert(key, Trailer::new(sequence, Kind::Value), key);
}

/// The keys of a walk over the memtable; each key is its own value.
fn keys(memtable: &Memtable) -> Vec<Vec<u8>> {
    let mut cursor = MemtableCursor::new(memtable);
    let mut keys = Vec::new();
    cursor.seek_to_first().unwrap();
    while cursor.is_valid() {
        assert_eq!(cursor.key(), cursor.value());
        keys.push(cursor.key().to_vec());
        cursor.next().unwrap();
    }
    keys
}

/// Model 1: pieces allocated at once never overlap, also across a change of chunks, and the count
/// is exact.
#[test]
fn pieces_do_not_overlap() {
    loom::model(|| {
        let arena = Arc::new(Arena::new(&Arc::default()));
        // Leaves space for one of the two pieces.
        arena.allocate(CHUNK_BYTES_MIN - 24);
        let before = arena.used_bytes();
        let other = {
            let arena = Arc::clone(&arena);
            thread::spawn(move || arena.allocate(24).as_ptr().addr())
        };
        let own = arena.allocate(24).as_ptr().addr();
        let seen = arena.used_bytes();
        let other = other.join().unwrap();
        assert!(own.abs_diff(other) >= 24);
        assert!(seen == before + 24 || seen == before + 48);
        assert_eq!(arena.used_bytes(), before + 48);
    });
}

/// A full leaf.
fn full() -> Arc<Memtable> {
    let memtable = Arc::new(Memtable::new(&Arc::default()));
    for (key, sequence) in [(b"a", 1), (b"c", 2), (b"e", 3)] {
        insert(&memtable, key, sequence);
    }
    memtable
}

/// Model 2a: a split and the reuse of a freed slot, while another thread reads: the reader finds the
/// earlier entries in either half.
#[test]
fn a_split_hides_nothing() {
    loom::model(|| {
        let memtable = full();
        let reader = {
            let memtable = Arc::clone(&memtable);
            thread::spawn(move || {
                for key in [b"e", b"c"] {
                    assert_eq!(memtable.get(key, SEQUENCE_MAX).unwrap().1, key);
                }
            })
        };
        insert(&memtable, b"b", 4);
        reader.join().unwrap();
        assert_eq!(keys(&memtable), [b"a", b"b", b"c", b"e"]);
    });
}

/// Model 2b: as 2a, but the reader walks forward.
#[test]
fn a_walk_over_a_split_is_whole() {
    loom::model(|| {
        let memtable = full();
        let reader = {
            let memtable = Arc::clone(&memtable);
            thread::spawn(move || {
                let mut met = keys(&memtable);
                assert!(met.is_sorted());
                met.retain(|key| key != b"b");
                assert_eq!(met, [b"a", b"c", b"e"]);
            })
        };
        insert(&memtable, b"b", 4);
        reader.join().unwrap();
    });
}

/// Model 2b, too: the reader walks backward.
#[test]
fn a_walk_back_over_a_split_is_whole() {
    loom::model(|| {
        let memtable = full();
        let reader = {
            let memtable = Arc::clone(&memtable);
            thread::spawn(move || {
                let mut cursor = MemtableCursor::new(&memtable);
                cursor.seek_to_last().unwrap();
                for key in [b"e", b"c", b"b", b"a"] {
                    if key == b"b" && cursor.key() != key {
                        continue;
                    }
                    assert_eq!(cursor.key(), key);
                    assert_eq!(cursor.value(), key);
                    cursor.prev().unwrap();
                }
                assert!(!cursor.is_valid());
            })
        };
        insert(&memtable, b"b", 4);
        reader.join().unwrap();
    });
}

/// Model 2c: two writers meet in a full leaf: one splits it, the other finds its place on the right
/// side.
#[test]
fn splits_meet() {
    loom::model(|| {
        let memtable = full();
        let writer = {
            let memtable = Arc::clone(&memtable);
            thread::spawn(move || insert(&memtable, b"b", 4))
        };
        insert(&memtable, b"d", 5);
        assert_eq!(memtable.get(b"e", SEQUENCE_MAX).unwrap().1, b"e");
        writer.join().unwrap();
        assert_eq!(keys(&memtable).concat(), b"abcde");
    });
}

/// Model 2d: two writers raise nodes into the same lane.
#[test]
fn a_lane_takes_nodes_from_two_writers() {
    // The splits move "c" and "f": with these numbers, their nodes are two lanes high.
    let high = |key: &[u8]| {
        (10..)
            .find(|sequence| height_of(random_of(key, *sequence)) == 2)
            .unwrap()
    };
    loom::model(move || {
        let memtable = Arc::new(Memtable::new(&Arc::default()));
        for (key, sequence) in [
            (b"a", 1),
            (b"b", 2),
            (b"c", high(b"c")),
            (b"d", 4),
            (b"e", 5),
            (b"f", high(b"f")),
        ] {
            insert(&memtable, key, sequence);
        }
        let writer = {
            let memtable = Arc::clone(&memtable);
            thread::spawn(move || insert(&memtable, b"aa", 6))
        };
        insert(&memtable, b"da", 7);
        writer.join().unwrap();
        let met = keys(&memtable);
        assert_eq!(met.concat(), b"aaabcddaef");
        for key in met {
            assert_eq!(memtable.get(&key, SEQUENCE_MAX).unwrap().1, key);
        }
    });
}

/// Model 2e: a writer adds versions of one key, which split its leaf, while another thread looks the
/// key up: the found versions only get newer.
#[test]
fn versions_of_one_key_only_get_newer() {
    loom::model(|| {
        let memtable = Arc::new(Memtable::new(&Arc::default()));
        for sequence in [1, 2] {
            insert(&memtable, b"key", sequence);
        }
        let find = |memtable: &Memtable| {
            let (trailer, value) = memtable.get(b"key", SEQUENCE_MAX).unwrap();
            assert_eq!(value, b"key");
            trailer.sequence()
        };
        let reader = {
            let memtable = Arc::clone(&memtable);
            thread::spawn(move || {
                let first = find(&memtable);
                assert!(first >= 2 && find(&memtable) >= first);
            })
        };
        insert(&memtable, b"key", 3);
        insert(&memtable, b"key", 4);
        reader.join().unwrap();
        assert_eq!(find(&memtable), 4);
    });
}

/// Model 2f: an operand is replaced by the value that it leads to, while its leaf is split and another thread reads:
/// the reader finds one of the two, whole.
#[test]
fn a_replacement_is_seen_whole() {
    loom::model(|| {
        let memtable = Arc::new(Memtable::new(&Arc::default()));
        insert(&memtable, b"a", 1);
        insert(&memtable, b"c", 2);
        let operand = Trailer::new(3, Kind::Operand);
        memtable.insert(b"e", operand, b"operand");
        let reader = {
            let memtable = Arc::clone(&memtable);
            thread::spawn(move || {
                let (trailer, value) = memtable.get(b"e", SEQUENCE_MAX).unwrap();
                assert_eq!(trailer.sequence(), 3);
                let is_value = trailer.kind() == Kind::Value;
                assert_eq!(value, if is_value { &b"value"[..] } else { b"operand" });
            })
        };
        let writer = {
            let memtable = Arc::clone(&memtable);
            thread::spawn(move || insert(&memtable, b"d", 4))
        };
        memtable.replace(b"e", operand.with_kind(Kind::Value), b"value");
        reader.join().unwrap();
        writer.join().unwrap();
        let (trailer, value) = memtable.get(b"e", SEQUENCE_MAX).unwrap();
        assert_eq!((trailer.kind(), value), (Kind::Value, &b"value"[..]));
        assert_eq!(memtable.entries(), 4);
    });
}
