//! The commit queue with real threads.

use super::{CommitQueue, Turn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;
use std::thread;

type Queue = CommitQueue<u64, u64>;

/// Queues `count` writers, one after the other, behind a leader that the caller holds. `act` handles
/// the turn of each on its own thread.
fn queue_up<'scope, A, O>(
    scope: &'scope thread::Scope<'scope, '_>,
    queue: &'scope Queue,
    count: u64,
    act: A,
) -> Vec<thread::ScopedJoinHandle<'scope, O>>
where
    A: Fn(Turn<'scope, u64, u64>) -> O + Copy + Send + 'scope,
    O: Send + 'scope,
{
    (0..count)
        .map(|number| {
            let before = queue.state.lock().queued.len();
            let writer = scope.spawn(move || act(queue.enter(10, || number)));
            while queue.state.lock().queued.len() == before {
                thread::park_timeout(std::time::Duration::from_millis(1));
            }
            writer
        })
        .collect()
}

#[test]
fn a_lone_writer_leads_without_a_request() {
    let queue = Queue::new();
    for _ in 0..3 {
        let turn = queue.enter(1, || unreachable!("no other writer leads"));
        let Turn::Lead(mut leader) = turn else {
            panic!("nobody else leads");
        };
        leader.build_group(usize::MAX);
        assert_eq!(leader.requests().count(), 0);
        assert!(leader.wait_for_followers());
        leader.finish();
    }
}

// I2
#[test]
fn a_group_is_a_prefix_of_the_queue_within_its_bound() {
    let queue = Queue::new();
    let mut leader = queue.exclusive();
    thread::scope(|scope| {
        let followers = queue_up(scope, &queue, 3, |turn| match turn {
            Turn::Follow(follower, answer) => {
                assert!(follower.done());
                answer
            }
            Turn::Lead(leader) => {
                leader.finish();
                u64::MAX
            }
            Turn::Abandoned => panic!("the leader finishes"),
        });
        leader.build_group(25);
        assert_eq!(leader.requests().copied().collect::<Vec<_>>(), [0, 1]);
        leader.answer(|number| number + 100);
        assert!(leader.wait_for_followers());
        leader.finish();
        let answers: Vec<u64> = followers
            .into_iter()
            .map(|follower| follower.join().unwrap())
            .collect();
        assert_eq!(answers, [100, 101, u64::MAX]);
    });
}

// I4
#[test]
fn a_leader_that_panics_fails_its_group_and_passes_the_leadership_on() {
    let queue = Queue::new();
    let mut leader = queue.exclusive();
    thread::scope(|scope| {
        let others = queue_up(scope, &queue, 2, |turn| matches!(turn, Turn::Abandoned));
        let result = catch_unwind(AssertUnwindSafe(move || {
            leader.build_group(10);
            panic!("the log write fails badly");
        }));
        assert!(result.is_err());
        let abandoned: Vec<bool> = others
            .into_iter()
            .map(|other| other.join().unwrap())
            .collect();
        assert_eq!(abandoned, [true, false]);
    });
    drop(queue.exclusive());
}

// I4
#[test]
fn a_follower_that_fails_fails_the_group() {
    let queue = Queue::new();
    let mut leader = queue.exclusive();
    thread::scope(|scope| {
        let followers = queue_up(scope, &queue, 2, |turn| match turn {
            Turn::Follow(follower, 0) => {
                drop(follower);
                false
            }
            Turn::Follow(follower, _) => follower.done(),
            _ => panic!("the leader answers"),
        });
        leader.build_group(usize::MAX);
        leader.answer(|number| *number);
        assert!(!leader.wait_for_followers());
        leader.finish();
        for follower in followers {
            assert!(!follower.join().unwrap());
        }
    });
    drop(queue.exclusive());
}

#[test]
fn a_group_never_contains_an_exclusive_leader() {
    let queue = Queue::new();
    let mut leader = queue.exclusive();
    let (alone, is_alone) = mpsc::channel();
    thread::scope(|scope| {
        let queue = &queue;
        scope.spawn(move || {
            let _leader = queue.exclusive();
            alone.send(()).unwrap();
        });
        while queue.state.lock().queued.is_empty() {
            thread::park_timeout(std::time::Duration::from_millis(1));
        }
        leader.build_group(usize::MAX);
        assert_eq!(leader.requests().count(), 0);
        assert!(is_alone.try_recv().is_err());
        drop(leader);
        is_alone.recv().unwrap();
    });
}

#[test]
fn many_writers_commit_in_one_order() {
    const WRITERS: u64 = 6;
    const EACH: u64 = 2_000;
    let queue = Queue::new();
    let next = AtomicU64::new(0);
    let inserted = AtomicU64::new(0);
    let visible = AtomicU64::new(0);
    let write = || match queue.enter(1, || 0) {
        Turn::Lead(mut leader) => {
            leader.build_group(3);
            let count = leader.requests().count() as u64 + 1;
            let base = next.load(Ordering::Relaxed);
            next.store(base + count, Ordering::Relaxed);
            let mut sequence = base;
            leader.answer(|_| {
                sequence += 1;
                sequence
            });
            inserted.fetch_add(1, Ordering::Relaxed);
            assert!(leader.wait_for_followers());
            assert_eq!(inserted.load(Ordering::Relaxed), base + count);
            visible.store(base + count, Ordering::Relaxed);
            leader.finish();
        }
        Turn::Follow(follower, sequence) => {
            inserted.fetch_add(1, Ordering::Relaxed);
            assert!(follower.done());
            assert!(visible.load(Ordering::Relaxed) > sequence);
        }
        Turn::Abandoned => panic!("every leader finishes"),
    };
    thread::scope(|scope| {
        for _ in 0..WRITERS {
            scope.spawn(|| (0..EACH).for_each(|_| write()));
        }
        scope.spawn(|| (0..EACH).for_each(|_| drop(queue.exclusive())));
    });
    assert_eq!(visible.into_inner(), WRITERS * EACH);
}
