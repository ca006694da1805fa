//! The commit queue with real threads.

use super::{CommitQueue, Request, Stage, Turn};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;
use std::thread;

type Queue = CommitQueue<u64, u64, u64>;

/// Queues `count` writers, one after the other, behind a leader that the caller holds. `act` handles
/// the turn of each on its own thread.
fn queue_up<'scope, A, O>(
    scope: &'scope thread::Scope<'scope, '_>,
    queue: &'scope Queue,
    count: u64,
    act: A,
) -> Vec<thread::ScopedJoinHandle<'scope, O>>
where
    A: Fn(Turn<'scope, u64, u64, u64>) -> O + Copy + Send + 'scope,
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
    let queue = Queue::new(usize::MAX);
    for _ in 0..3 {
        let turn = queue.enter(1, || unreachable!("no other writer leads"));
        let Turn::Lead(mut leader) = turn else {
            panic!("nobody else leads");
        };
        leader.build_group();
        assert_eq!(leader.requests().count(), 0);
        assert!(leader.wait_for_followers());
        leader.finish();
    }
}

// I2
#[test]
fn a_group_is_a_prefix_of_the_queue_within_its_bound() {
    let queue = Queue::new(25);
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
            Turn::Done(_) | Turn::Abandoned => panic!("the leader answers"),
        });
        leader.build_group();
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
    let queue = Queue::new(10);
    let mut leader = queue.exclusive();
    thread::scope(|scope| {
        let others = queue_up(scope, &queue, 2, |turn| matches!(turn, Turn::Abandoned));
        let result = catch_unwind(AssertUnwindSafe(move || {
            leader.build_group();
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
    let queue = Queue::new(usize::MAX);
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
        leader.build_group();
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
    let queue = Queue::new(usize::MAX);
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
        leader.build_group();
        assert_eq!(leader.requests().count(), 0);
        assert!(is_alone.try_recv().is_err());
        drop(leader);
        is_alone.recv().unwrap();
    });
}

/// Queues a writer of 10 bytes, or one that asks for exclusive leadership, without a thread.
fn queue_one(queue: &Queue, payload: Option<u64>) -> Arc<Request<u64, u64, u64>> {
    let request = Arc::new(Request::new(payload, 10));
    let mut state = queue.state.lock();
    state.queued.push_back(Arc::clone(&request));
    request
}

// I1
#[test]
fn the_first_in_line_learns_that_it_may_lead() {
    for (bytes_max, payload, inherits) in
        [(10, Some(1), false), (9, Some(1), true), (99, None, true)]
    {
        let queue = Queue::new(bytes_max);
        let leader = queue.exclusive();
        let first = queue_one(&queue, payload);
        let second = queue_one(&queue, Some(2));
        drop(leader);
        assert_eq!(queue.state.lock().has_leader, inherits);
        // Only one that no group can contain gets the leadership handed over.
        let stage = std::mem::replace(&mut first.progress.lock().stage, Stage::Waiting);
        assert_eq!(matches!(stage, Stage::Leading), inherits);
        assert_eq!(matches!(stage, Stage::MayLead), !inherits);
        assert!(matches!(second.progress.lock().stage, Stage::Waiting));
        if !inherits {
            assert!(queue.try_lead_as(&second).is_none());
            drop(queue.try_lead_as(&first).unwrap());
            assert!(matches!(second.progress.lock().stage, Stage::MayLead));
        }
    }
}

// I1
#[test]
fn who_takes_the_leadership_first_commits_for_those_who_wait() {
    let queue = Queue::new(usize::MAX);
    let leader = queue.exclusive();
    let [first, second] = [1, 2].map(|number| queue_one(&queue, Some(number)));
    drop(leader);
    let Turn::Lead(mut faster) = queue.enter(10, || unreachable!("nobody leads")) else {
        panic!("the leadership is free");
    };
    assert!(queue.try_lead_as(&first).is_none());
    faster.build_group();
    faster.finish_with(|number| number + 7);
    // The late news of a leader does not hide the outcome.
    first.set_stage(Stage::MayLead);
    assert!(queue.try_lead_as(&first).is_none());
    let outcomes = [first, second].map(|request| match request.wait() {
        Stage::Done(number) => number,
        stage => panic!("{stage:?}"),
    });
    assert_eq!(outcomes, [8, 9]);
}

#[test]
fn who_asks_for_exclusive_leadership_passes_nobody() {
    let queue = Queue::new(usize::MAX);
    let leader = queue.exclusive();
    let first = queue_one(&queue, Some(1));
    drop(leader);
    thread::scope(|scope| {
        let alone = scope.spawn(|| drop(queue.exclusive()));
        while queue.state.lock().queued.len() < 2 {
            thread::park_timeout(std::time::Duration::from_millis(1));
        }
        drop(queue.try_lead_as(&first).unwrap());
        alone.join().unwrap();
    });
}

#[test]
fn many_writers_commit_in_one_order() {
    const WRITERS: u64 = 6;
    const EACH: u64 = 2_000;
    let queue = Queue::new(3);
    let next = AtomicU64::new(0);
    let inserted = AtomicU64::new(0);
    let visible = AtomicU64::new(0);
    let write = || match queue.enter(1, || 0) {
        Turn::Lead(mut leader) => {
            leader.build_group();
            let count = leader.requests().count() as u64 + 1;
            let base = next.load(Ordering::Relaxed);
            next.store(base + count, Ordering::Relaxed);
            let mut sequence = base;
            let take = |_: &u64| {
                sequence += 1;
                sequence
            };
            if base.is_multiple_of(3) {
                // The leader does everything.
                visible.store(base + count, Ordering::Relaxed);
                inserted.fetch_add(count, Ordering::Relaxed);
                leader.finish_with(take);
                return;
            }
            leader.answer(take);
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
        Turn::Done(sequence) => assert!(visible.load(Ordering::Relaxed) > sequence),
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
