//! Loom models of the commit queue, over the real type.
//!
//! ```text
//! RUSTFLAGS="--cfg loom" LOOM_MAX_PREEMPTIONS=3 \
//!     cargo test --release -p windrow --lib --target-dir target/loom models
//! ```
//!
//! The models access the data that the queue orders with relaxed atomics. So they fail if the queue
//! itself does not order it.

use super::{CommitQueue, Leader, Turn};
use crate::base::sync::Handover;
use crate::base::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use loom::thread;
use std::sync::Arc;

/// The smallest engine that commits through a queue. A write is the number of its writer.
struct Engine {
    queue: CommitQueue<u64, u64, u64>,
    /// Whether a leader does everything for its group.
    does_all: bool,
    /// The writes in commit order; only the leader accesses them.
    log: [AtomicU64; 3],
    /// The number of writes.
    logged: AtomicUsize,
    /// Detects two leaders at once.
    leading: Handover,
    poisoned: AtomicUsize,
    /// The active memtable.
    current: AtomicUsize,
    /// Per memtable, a bit for each sequence number inserted.
    memtables: [AtomicU64; 2],
    /// All sequence numbers below are visible.
    visible: AtomicU64,
}

/// Runs `model` on an engine in which members insert their own entries, and on one in which leaders do.
fn model(model: impl Fn(Arc<Engine>) + Send + Sync + Copy + 'static) {
    for does_all in [false, true] {
        loom::model(move || model(Engine::new(does_all)));
    }
}

/// The write whose log write fails.
const FAILING: u64 = 9;

impl Engine {
    fn new(does_all: bool) -> Arc<Self> {
        Arc::new(Self {
            queue: CommitQueue::new(2),
            does_all,
            log: [0; 3].map(AtomicU64::new),
            logged: AtomicUsize::new(0),
            leading: Handover::new(),
            poisoned: AtomicUsize::new(0),
            current: AtomicUsize::new(0),
            memtables: [AtomicU64::new(0), AtomicU64::new(0)],
            visible: AtomicU64::new(0),
        })
    }

    fn spawn(self: &Arc<Self>, write: u64) -> thread::JoinHandle<Option<u64>> {
        let engine = Arc::clone(self);
        thread::spawn(move || engine.write(write))
    }

    /// Writes. Returns the sequence number if the write is acknowledged.
    fn write(&self, write: u64) -> Option<u64> {
        match self.queue.enter(1, || write) {
            Turn::Lead(leader) => self.lead(leader, write),
            Turn::Follow(follower, sequence) => {
                self.insert(sequence);
                assert!(follower.done());
                assert!(self.visible.load(Ordering::Relaxed) > sequence);
                Some(sequence)
            }
            Turn::Done(sequence) => {
                assert!(self.visible.load(Ordering::Relaxed) > sequence);
                Some(sequence)
            }
            Turn::Abandoned => None,
        }
    }

    fn lead(&self, mut leader: Leader<'_, u64, u64, u64>, write: u64) -> Option<u64> {
        leader.build_group();
        if self.poisoned.load(Ordering::Relaxed) != 0 {
            return None;
        }
        let base = self.log(write);
        for request in leader.requests() {
            self.log(*request);
        }
        if write == FAILING {
            self.poisoned.store(1, Ordering::Relaxed);
            return None;
        }
        let mut end = base + 1;
        let mut take = |_: &u64| {
            end += 1;
            end - 1
        };
        if self.does_all {
            let sequences: Vec<u64> = leader.requests().map(take).collect();
            sequences.iter().for_each(|sequence| self.insert(*sequence));
            self.insert(base);
            let end = base + 1 + sequences.len() as u64;
            assert_eq!(self.visible.swap(end, Ordering::Release), base);
            let mut sequences = sequences.into_iter();
            leader.finish_with(|_| sequences.next().unwrap());
            return Some(base);
        }
        leader.answer(&mut take);
        self.insert(base);
        assert!(leader.wait_for_followers());
        // Release, since readers do not pass through the queue.
        assert_eq!(self.visible.swap(end, Ordering::Release), base);
        leader.finish();
        Some(base)
    }

    /// Appends to the log. Returns the sequence number.
    fn log(&self, write: u64) -> u64 {
        self.leading.give();
        let sequence = self.logged.load(Ordering::Relaxed);
        self.log[sequence].store(write, Ordering::Relaxed);
        self.logged.store(sequence + 1, Ordering::Relaxed);
        sequence as u64
    }

    fn insert(&self, sequence: u64) {
        let memtable = self.current.load(Ordering::Relaxed);
        let before = self.memtables[memtable].fetch_or(1 << sequence, Ordering::Relaxed);
        assert_eq!(before & 1 << sequence, 0);
    }

    fn inserted(&self) -> u64 {
        self.memtables
            .iter()
            .fold(0, |bits, memtable| bits | memtable.load(Ordering::Relaxed))
    }
}

/// Model 3: each of three writers gets a turn and a sequence number of its own.
#[test]
fn leadership_is_handed_on() {
    model(|engine| {
        let others = [engine.spawn(1), engine.spawn(2)];
        let mut sequences = vec![engine.write(0)];
        sequences.extend(others.map(|other| other.join().unwrap()));
        sequences.sort_unstable();
        assert_eq!(sequences, [Some(0), Some(1), Some(2)]);
        assert_eq!(engine.inserted(), 0b111);
    });
}

/// Model 4: all entries below the visible end are inserted.
#[test]
fn writes_become_visible_in_commit_order() {
    model(|engine| {
        let writer = engine.spawn(0);
        let reader = {
            let engine = Arc::clone(&engine);
            thread::spawn(move || {
                let visible = engine.visible.load(Ordering::Acquire);
                let below = (1 << visible) - 1;
                assert_eq!(engine.inserted() & below, below);
            })
        };
        assert!(engine.write(1).is_some());
        writer.join().unwrap();
        reader.join().unwrap();
        assert_eq!(engine.visible.load(Ordering::Relaxed), 2);
    });
}

/// Model 5: no writer inserts into a memtable that an exclusive leader has replaced.
#[test]
fn rotation_waits_for_writers_in_flight() {
    model(|engine| {
        let writers = [engine.spawn(0), engine.spawn(1)];
        let leader = engine.queue.exclusive();
        engine.current.store(1, Ordering::Relaxed);
        let frozen = engine.memtables[0].load(Ordering::Relaxed);
        drop(leader);
        for writer in writers {
            assert!(writer.join().unwrap().is_some());
        }
        assert_eq!(engine.memtables[0].load(Ordering::Relaxed), frozen);
        assert_eq!(engine.inserted(), 0b11);
    });
}

/// Model 11: after a failed log write no write is acknowledged, and no writer is left waiting.
#[test]
fn nothing_is_acknowledged_after_a_failure() {
    model(|engine| {
        let others = [engine.spawn(1), engine.spawn(2)];
        // This write fails only if it leads; as a follower it succeeds with its leader.
        engine.write(FAILING);
        let acknowledged = others.map(|other| other.join().unwrap());
        let poisoned = engine.poisoned.load(Ordering::Relaxed) != 0;
        let mut log: Vec<u64> = engine.log[..engine.logged.load(Ordering::Relaxed)]
            .iter()
            .map(|write| write.load(Ordering::Relaxed))
            .collect();
        if poisoned {
            log.truncate(log.iter().position(|write| *write == FAILING).unwrap());
        }
        for (write, sequence) in [1, 2].into_iter().zip(acknowledged) {
            let position = log.iter().position(|logged| *logged == write);
            assert_eq!(position.map(|position| position as u64), sequence);
        }
    });
}
