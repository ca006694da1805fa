//! Loom models of writers, readers and the spans that these find, over the real types.
//! Run with `--cfg loom`.

use loom::thread;
use std::sync::Arc;

use super::{ReadPoint, TombstoneSpans};
use crate::base::SequenceNumber;
use crate::base::sync::atomic::{AtomicU64, Ordering};

/// A keyspace with two keys, each with a value and later perhaps a tombstone. Sequence number 0 stands for none.
struct Model {
    spans: TombstoneSpans,
    values: [AtomicU64; 2],
    tombstones: [AtomicU64; 2],
    visible: AtomicU64,
}

/// All keys are from here to before the end.
const FROM: &[u8] = &[0];
const TO: &[u8] = &[9];

fn key(number: usize) -> [u8; 1] {
    [u8::try_from(number).unwrap() + 1]
}

impl Model {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            spans: TombstoneSpans::new(&Arc::default()),
            values: [AtomicU64::new(0), AtomicU64::new(0)],
            tombstones: [AtomicU64::new(0), AtomicU64::new(0)],
            visible: AtomicU64::new(1),
        })
    }

    /// Writes a value as a commit does, whose turn it is to become visible.
    fn write(&self, number: usize, sequence: SequenceNumber) {
        self.spans.note_write(&key(number), sequence);
        self.values[number].store(sequence, Ordering::Release);
        self.visible.store(sequence, Ordering::Release);
    }

    fn remove(&self, number: usize, sequence: SequenceNumber) {
        self.tombstones[number].store(sequence, Ordering::Release);
        self.visible.store(sequence, Ordering::Release);
    }

    /// The keys that a reader at `sequence` sees.
    fn seen(&self, sequence: SequenceNumber) -> [bool; 2] {
        [0, 1].map(|number| {
            let value = self.values[number].load(Ordering::Acquire);
            let tombstone = self.tombstones[number].load(Ordering::Acquire);
            let is_deleted = tombstone > value && tombstone <= sequence;
            value > 0 && value <= sequence && !is_deleted
        })
    }

    /// Passes all keys and reports them if none is visible; checks what a seek to each would skip.
    fn read(&self) -> [bool; 2] {
        let sequence = self.visible.load(Ordering::Acquire);
        let reader = ReadPoint {
            sequence,
            complete: sequence,
        };
        let spans = [0, 1].map(|number| self.spans.around(&key(number), reader).is_some());
        let seen = self.seen(sequence);
        for number in [0, 1] {
            assert!(
                !(spans[number] && seen[number]),
                "a seek skips a visible key"
            );
        }
        if seen == [false; 2] {
            self.spans.note_empty(FROM, TO, reader, 20);
        }
        seen
    }
}

#[test]
fn a_span_holds_no_key_that_a_writer_adds() {
    loom::model(|| {
        let model = Model::new();
        let writer = {
            let model = Arc::clone(&model);
            thread::spawn(move || model.write(0, 2))
        };
        let reader = {
            let model = Arc::clone(&model);
            thread::spawn(move || {
                model.read();
            })
        };
        model.read();
        writer.join().unwrap();
        assert_eq!(model.read(), [true, false]);
        reader.join().unwrap();
        assert_eq!(model.read(), [true, false]);
    });
}

#[test]
fn a_span_survives_deletes_and_is_cut_by_values() {
    loom::model(|| {
        let model = Model::new();
        model.write(0, 2);
        let writer = {
            let model = Arc::clone(&model);
            thread::spawn(move || {
                model.remove(0, 3);
                model.write(1, 4);
            })
        };
        model.read();
        model.read();
        writer.join().unwrap();
        assert_eq!(model.read(), [false, true]);
        model.remove(1, 5);
        assert_eq!(model.read(), [false, false]);
        assert_eq!(model.read(), [false, false]);
        let reader = ReadPoint {
            sequence: 5,
            complete: 5,
        };
        assert!(model.spans.around(&key(1), reader).is_some());
    });
}
