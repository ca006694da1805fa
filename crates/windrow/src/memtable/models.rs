//! Loom models of the memtable, over the real types.
//!
//! ```text
//! RUSTFLAGS="--cfg loom" LOOM_MAX_PREEMPTIONS=3 \
//!     cargo test --release -p windrow --lib --target-dir target/loom models
//! ```

use super::arena::Arena;
use super::{Memtable, MemtableCursor};
use crate::base::key::SEQUENCE_MAX;
use crate::base::{Cursor, Kind, Trailer};
use loom::thread;
use std::sync::Arc;

/// Loom's threads together own what the model builds.
fn shared<T>(value: T) -> Arc<T> {
    Arc::new(value)
}

fn insert(memtable: &Memtable, key: &[u8], sequence: u64) {
    memtable.insert(key, Trailer::new(sequence, Kind::Value), key);
}

/// The keys that a walk over the memtable meets; each stands beside itself as value.
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
        let arena = shared(Arena::new());
        // Leaves room for one of the two pieces.
        arena.allocate(super::arena::CHUNK_BYTES_MIN - 24);
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

/// Model 2a: two writers at one place and a reader: the reader sees whole entries in order, and
/// afterwards all are there.
#[test]
fn insertions_meet_a_reader() {
    loom::model(|| {
        let memtable = shared(Memtable::new());
        insert(&memtable, b"a", 1);
        let writers = [(b"c", 2), (b"b", 3)].map(|(key, sequence)| {
            let memtable = Arc::clone(&memtable);
            thread::spawn(move || insert(&memtable, key, sequence))
        });
        let met = keys(&memtable);
        assert!(met.is_sorted());
        assert_eq!(met[0], b"a");
        for writer in writers {
            writer.join().unwrap();
        }
        assert_eq!(keys(&memtable), [b"a", b"b", b"c"]);
    });
}

/// Model 2b: versions of one key from two writers while a third thread looks the key up: what it
/// finds only gets newer.
#[test]
fn versions_of_one_key_only_get_newer() {
    loom::model(|| {
        let memtable = shared(Memtable::new());
        let writers = [1, 2].map(|sequence| {
            let memtable = Arc::clone(&memtable);
            thread::spawn(move || insert(&memtable, b"key", sequence))
        });
        let find = || {
            let (trailer, value) = memtable.get(b"key", SEQUENCE_MAX)?;
            assert_eq!(value, b"key");
            Some(trailer.sequence())
        };
        let first = find();
        assert!(find() >= first);
        for writer in writers {
            writer.join().unwrap();
        }
        assert_eq!(find(), Some(2));
    });
}
