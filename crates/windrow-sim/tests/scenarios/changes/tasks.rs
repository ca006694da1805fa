//! Tasks that wait for changes, in a runtime without threads: each is woken when it has an answer, and not before.

use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake};

use windrow::{Change, Changes, Db, Durability, ErrorKind, Keyspace, Result};
use windrow_sim::disk::{Fault, OperationKind};
use windrow_sim::{SimDisk, SteppedRuntime};

use super::{held, open};
use crate::common::{FOLDER, on, small};

/// Counts its calls.
#[derive(Default)]
struct Alarm(AtomicUsize);

impl Wake for Alarm {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// A feed and its task.
struct Task {
    changes: Changes,
    alarm: Arc<Alarm>,
}

impl Task {
    fn new(changes: Changes) -> Self {
        let alarm = Arc::default();
        Self { changes, alarm }
    }

    fn poll(&mut self) -> Poll<Option<Result<Change>>> {
        let waker = Arc::clone(&self.alarm).into();
        self.changes.poll_change(&mut Context::from_waker(&waker))
    }

    /// Polls to the live end. Returns the number of changes.
    fn drain(&mut self) -> usize {
        let mut count = 0;
        while let Poll::Ready(change) = self.poll() {
            change.unwrap().unwrap();
            count += 1;
        }
        count
    }

    /// The error that the next poll must give. Behind it is the end.
    fn last_error(&mut self) -> ErrorKind {
        let Poll::Ready(Some(Err(error))) = self.poll() else {
            unreachable!("there is an error")
        };
        assert!(matches!(self.poll(), Poll::Ready(None)));
        assert!(!self.is_registered());
        error.kind()
    }

    /// How often it was woken since the last call of this.
    fn calls(&self) -> usize {
        self.alarm.0.swap(0, Ordering::Relaxed)
    }

    /// Whether the database has its waker.
    fn is_registered(&self) -> bool {
        Arc::strong_count(&self.alarm) > 1
    }
}

/// A database with one keyspace, on a runtime that runs jobs when it is stepped.
fn stepped(disk: &SimDisk) -> (SteppedRuntime, Db, Keyspace) {
    let runtime = SteppedRuntime::new(1);
    let mut options = on(small(), disk, &runtime);
    options.change_retention.bytes = 1;
    let db = Db::open(FOLDER, options).unwrap();
    let keyspace = db.keyspace("k").unwrap();
    (runtime, db, keyspace)
}

#[test]
fn a_task_is_woken_once_for_an_answer_and_never_without_one() {
    let disk = SimDisk::new();
    let (runtime, db, keyspace) = stepped(&disk);
    let consumer = db.consumer("c").unwrap();
    let mut tasks = [
        Task::new(consumer.changes().unwrap()),
        Task::new(db.changes(1).unwrap()),
    ];
    for round in 0..5_u8 {
        for task in &mut tasks {
            task.drain();
            assert!(task.is_registered());
            assert!(task.poll().is_pending());
        }
        // Neither a job nor an acknowledgement is news.
        consumer.acknowledge(db.snapshot().sequence()).unwrap();
        db.flush().unwrap();
        runtime.run_until_idle(100);
        assert_eq!(tasks.each_ref().map(Task::calls), [0, 0]);
        for key in 0..3 {
            keyspace.insert([round, key], "value").unwrap();
        }
        if round == 3 {
            // An answer that comes first forgets the waker.
            assert!(tasks[0].poll().is_ready());
            assert!(!tasks[0].is_registered());
        }
        runtime.run_until_idle(100);
        let first = usize::from(round != 3);
        assert_eq!(tasks.each_ref().map(Task::calls), [first, 1]);
        assert!(tasks.iter().all(|task| !task.is_registered()));
        assert_eq!(tasks[1].drain(), 3);
        assert_eq!(tasks[0].drain(), 2 + first);
    }
    let [dropped, mut closed] = tasks;
    let Task { changes, alarm } = dropped;
    drop((changes, consumer));
    assert_eq!(Arc::strong_count(&alarm), 1);
    // Nothing is stepped: the close itself wakes.
    db.close().unwrap();
    assert_eq!(closed.calls(), 1);
    assert_eq!(closed.last_error(), ErrorKind::Closed);
    assert_eq!(alarm.0.load(Ordering::Relaxed), 0);
}

#[test]
fn a_task_whose_consumer_is_gone_or_behind_is_woken() {
    let disk = SimDisk::new();
    let (runtime, db, keyspace) = stepped(&disk);
    for is_removed in [true, false] {
        let consumer = db.consumer("c").unwrap();
        for key in 0..60_u8 {
            keyspace.insert([key], [key; 200]).unwrap();
        }
        let mut task = Task::new(consumer.changes().unwrap());
        assert_eq!(task.drain(), 60);
        let expected = if is_removed {
            db.remove_consumer("c").unwrap();
            ErrorKind::NotFound
        } else {
            db.flush().unwrap();
            assert!(db.consumers()[0].is_behind);
            ErrorKind::FellBehind
        };
        runtime.run_until_idle(100);
        assert_eq!(task.calls(), 1);
        assert_eq!(task.last_error(), expected);
    }
}

#[test]
fn a_poisoned_database_wakes_its_tasks() {
    let disk = SimDisk::new();
    let (runtime, db, keyspace) = stepped(&disk);
    let mut task = Task::new(db.changes(1).unwrap());
    task.drain();
    disk.set_faults([Fault::io(OperationKind::Sync, 0)]);
    let lost = keyspace.insert_with("lost", "value", Durability::Sync);
    lost.unwrap_err();
    assert!(task.is_registered());
    runtime.run_until_idle(100);
    assert_eq!(task.calls(), 1);
    assert_eq!(task.last_error(), ErrorKind::Poisoned);
}

#[test]
fn a_waker_that_panics_harms_nobody() {
    struct Panics;

    impl Wake for Panics {
        fn wake(self: Arc<Self>) {
            resume_unwind(Box::new("planted"));
        }
    }

    let disk = SimDisk::new();
    let (runtime, db, keyspace) = stepped(&disk);
    // It registers first, so it is called first.
    let mut panics = Task::new(db.changes(1).unwrap());
    let mut other = Task::new(db.changes(1).unwrap());
    panics.drain();
    let waker = Arc::new(Panics).into();
    let polled = panics.changes.poll_change(&mut Context::from_waker(&waker));
    assert!(polled.is_pending());
    other.drain();
    keyspace.insert("a", "value").unwrap();
    runtime.run_until_idle(100);
    assert_eq!(other.calls(), 1);
    assert_eq!([panics.drain(), other.drain()], [1, 1]);
    keyspace.insert("b", "value").unwrap();
    db.close().unwrap();
}

#[test]
fn an_error_that_may_pass_does_not_end_the_changes() {
    let disk = SimDisk::new();
    let (db, consumer, all) = held(&disk);
    drop((consumer, db));
    let db = open(&disk);
    let mut task = Task::new(db.consumer("c").unwrap().changes().unwrap());
    disk.set_faults([Fault::io(OperationKind::Read, 2)]);
    let (mut found, mut errors) = (Vec::new(), Vec::new());
    while let Poll::Ready(answer) = task.poll() {
        match answer.unwrap() {
            Ok(change) => found.push(change),
            Err(error) => errors.push(error.kind()),
        }
    }
    assert_eq!(errors, [ErrorKind::Io]);
    assert_eq!(found, all);
}
