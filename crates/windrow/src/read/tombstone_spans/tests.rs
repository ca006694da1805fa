//! Which keys a keyspace's spans let readers skip.

use std::sync::Arc;

use super::{ReadPoint, TombstoneSpans};
use crate::base::MemoryTracker;

/// The read point of a reader with complete sources.
fn at(sequence: u64) -> ReadPoint {
    ReadPoint {
        sequence,
        complete: sequence,
    }
}

fn spans() -> TombstoneSpans {
    TombstoneSpans::new(&Arc::default())
}

/// The key at which a seek for `key` at `sequence` begins, if a span holds `key`.
fn skip(spans: &TombstoneSpans, key: &[u8], sequence: u64) -> Option<Vec<u8>> {
    let span = spans.around(key, at(sequence));
    span.map(|span| span.to().to_vec())
}

#[test]
fn what_a_reader_of_all_writes_finds_is_a_span_at_once() {
    let spans = spans();
    spans.note_write(b"m", 5);
    spans.note_empty(b"b", b"k", at(7), 20);
    assert_eq!(skip(&spans, b"b", 7), Some(b"k".to_vec()));
    assert_eq!(skip(&spans, b"c", 9), Some(b"k".to_vec()));
    assert_eq!(skip(&spans, b"b", 6), None, "an older reader");
    assert_eq!(skip(&spans, b"k", 9), None, "behind the span");
    assert_eq!(skip(&spans, b"a", 9), None, "before the span");
    let start = |key: &[u8]| spans.before(key, at(9)).map(|span| span.from().to_vec());
    assert_eq!(start(b"k"), Some(b"b".to_vec()));
    assert_eq!(start(b"c"), Some(b"b".to_vec()));
    assert_eq!(start(b"b"), None);
    assert_eq!(start(b"l"), None);
}

#[test]
fn spans_elsewhere_stay_and_neighbours_join() {
    let spans = spans();
    spans.note_empty(b"a", b"c", at(1), 20);
    spans.note_empty(b"x", b"z", at(2), 20);
    assert_eq!(skip(&spans, b"b", 2), Some(b"c".to_vec()));
    assert_eq!(skip(&spans, b"x", 2), Some(b"z".to_vec()));
    spans.note_empty(b"c", b"x", at(3), 20);
    assert_eq!(skip(&spans, b"a", 3), Some(b"z".to_vec()));
    assert_eq!(skip(&spans, b"a", 2), None, "the part between is younger");
}

#[test]
fn a_write_cuts_its_key_out() {
    let spans = spans();
    spans.note_empty(b"a", b"z", at(7), 20);
    spans.note_write(b"m", 8);
    assert_eq!(skip(&spans, b"a", 8), Some(b"m".to_vec()));
    assert_eq!(skip(&spans, b"m", 8), None);
    assert_eq!(skip(&spans, b"m\0", 8), Some(b"z".to_vec()));
    spans.note_writes(b"c", b"w", 9);
    assert_eq!(skip(&spans, b"a", 9), Some(b"c".to_vec()));
    assert_eq!(skip(&spans, b"d", 9), None);
    assert_eq!(skip(&spans, b"x", 9), Some(b"z".to_vec()));
    spans.note_writes(b"", b"zz", 10);
    assert!(!spans.has_any());
}

#[test]
fn a_reader_of_fewer_writes_only_proposes() {
    let spans = spans();
    spans.note_write(b"x", 8);
    spans.note_empty(b"a", b"k", at(7), 20);
    assert_eq!(skip(&spans, b"a", 9), None);
    // It does not delay the proposal either, and only a reader of all writes confirms it, in part.
    spans.note_write(b"y", 9);
    spans.note_empty(b"a", b"k", at(7), 20);
    spans.note_empty(b"c", b"l", at(8), 20);
    assert_eq!(skip(&spans, b"c", 9), Some(b"k".to_vec()));
    assert_eq!(skip(&spans, b"a", 9), None);
}

#[test]
fn proposals_of_many_queues_stay_beside_a_writer() {
    let spans = spans();
    let key = |number: u32| format!("{number:04}").into_bytes();
    let (mut newest, queues) = (10, 0..100);
    for round in 0..3 {
        for queue in queues.clone() {
            newest += 1;
            spans.note_write(b"x", newest);
            spans.note_empty(&key(10 * queue), &key(10 * queue + 5), at(newest - 1), 20);
            let is_found = skip(&spans, &key(10 * queue), newest).is_some();
            assert_eq!(is_found, round > 0, "queue {queue} in round {round}");
        }
    }
}

/// Writers would not find such a proposal.
#[test]
fn full_proposals_take_no_more_and_make_no_span() {
    let spans = spans();
    let key = |number: u32| format!("{number:04}").into_bytes();
    spans.note_write(b"x", 1_000);
    for number in 0..128 {
        spans.note_empty(&key(10 * number), &key(10 * number + 5), at(7), 5_000);
    }
    spans.note_empty(b"a", b"k", at(1_000), 20);
    assert_eq!(skip(&spans, b"a", 1_000), None);
    // What is worth more has a place.
    spans.note_empty(b"a", b"k", at(1_000), 60_000);
    assert_eq!(skip(&spans, b"a", 1_000), Some(b"k".to_vec()));
}

#[test]
fn proposals_that_touch_count_as_the_later_one() {
    let spans = spans();
    spans.note_write(b"x", 8);
    spans.note_empty(b"a", b"e", at(7), 20);
    spans.note_write(b"y", 10);
    spans.note_empty(b"e", b"k", at(9), 20);
    spans.note_empty(b"a", b"k", at(9), 20);
    assert_eq!(skip(&spans, b"a", 10), None);
    spans.note_empty(b"a", b"k", at(10), 20);
    assert_eq!(skip(&spans, b"a", 10), Some(b"k".to_vec()));
}

#[test]
fn a_write_cuts_its_key_out_of_a_proposal() {
    let spans = spans();
    spans.note_write(b"x", 8);
    spans.note_empty(b"a", b"k", at(7), 20);
    spans.note_write(b"b", 9);
    spans.note_empty(b"a", b"k", at(8), 20);
    assert_eq!(skip(&spans, b"a", 9), Some(b"b".to_vec()));
    assert_eq!(skip(&spans, b"b", 9), None);
    assert_eq!(skip(&spans, b"c", 9), Some(b"k".to_vec()));
}

#[test]
fn the_bytes_are_counted_and_bounded() {
    let tracker: Arc<MemoryTracker> = Arc::default();
    let spans = TombstoneSpans::new(&tracker);
    let key = |number: u32| format!("{number:01000}").into_bytes();
    spans.note_write(&key(0), 1_000);
    // Proposals, and then spans.
    for sequence in [999, 1_000] {
        for number in 1..1_000 {
            spans.note_empty(&key(10 * number), &key(10 * number + 5), at(sequence), 20);
            assert!(tracker.bytes() > 0 && tracker.bytes() < 512 << 10);
        }
    }
    spans.note_writes(&[], &[255], 2_000);
    assert_eq!(tracker.bytes(), 0);
}
