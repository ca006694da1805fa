//! The queue of writers behind group commit: one leader at a time, and the group it commits.
//!
//! Owns the leadership and the queued writers. It knows nothing of logs, memtables and sequence
//! numbers: `T` is the request of a queued writer, `R` the answer of its leader.
//!
//! ```text
//! leader    enter -> build_group -> (write log) -> answer -> (insert) -> wait_for_followers -> (publish) -> finish
//!                                                    |                       ^                                |
//!                                                    v                       |                                v
//! follower  enter ...................... waits .. its answer -> (insert) -> done ................ waits .. published?
//! ```
//!
//! Without a leader, a writer becomes the leader with one lock and without an allocation. So a runtime
//! with one thread never waits here. Every other writer enters the queue. It leaves the queue as a
//! follower of the current leader or as the next leader.
//!
//! Invariants:
//! - I1: There is at most one leader. The leadership passes to the first queued writer; it is free if
//!   the queue is empty. So no writer waits without a leader.
//! - I2: The queue is first in, first out: a group is a prefix of it.
//! - I3: A group is over before the next leader starts: each of its followers has reported.
//! - I4: Every member of a group learns its outcome. A leader that returns early or panics fails its
//!   group and passes the leadership on.
//!
//! Concurrency: `state` guards the queue and the reports. Each request has a lock and a condition of
//! its own, so a wake-up reaches exactly one writer. No thread holds two locks at once.

#[cfg(all(test, loom))]
mod models;
#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;

use crate::base::sync::{Condvar, Mutex};
use std::collections::VecDeque;
use std::mem;
use std::sync::Arc;

/// The queue of writers; see the module.
#[derive(Debug)]
pub(crate) struct CommitQueue<T, R> {
    state: Mutex<State<T, R>>,
    /// Notified after the last follower of a group has reported.
    followers_done: Condvar,
}

#[derive(Debug)]
struct State<T, R> {
    /// Whether there is a leader.
    has_leader: bool,
    /// The writers that wait for the leadership, oldest first.
    queued: VecDeque<Arc<Request<T, R>>>,
    /// Followers of the current group that have not reported.
    unreported: usize,
    /// Whether any of them reported a failure.
    failed: bool,
}

/// One queued writer.
#[derive(Debug)]
struct Request<T, R> {
    /// Its request; `None` if it asks for exclusive leadership.
    payload: Option<T>,
    /// How much it adds to the size of a group.
    bytes: usize,
    stage: Mutex<Stage<R>>,
    changed: Condvar,
}

/// The progress of a queued writer.
#[derive(Debug)]
enum Stage<R> {
    /// It has no answer yet.
    Waiting,
    /// It is the leader.
    Leading,
    /// Its leader has answered.
    Answered(R),
    /// Its group is over; it was published or not.
    Over { published: bool },
}

/// The role of a writer that entered.
#[derive(Debug)]
#[must_use]
pub(crate) enum Turn<'queue, T, R> {
    /// It leads.
    Lead(Leader<'queue, T, R>),
    /// It follows a leader, which gave this answer.
    Follow(Follower<'queue, T, R>, R),
    /// Its leader took its request and failed before it answered.
    Abandoned,
}

impl<T, R> CommitQueue<T, R> {
    pub(crate) fn new() -> Self {
        Self {
            state: Mutex::new(State {
                has_leader: false,
                queued: VecDeque::new(),
                unreported: 0,
                failed: false,
            }),
            followers_done: Condvar::new(),
        }
    }

    /// Waits for a turn. If another writer leads, calls `payload` for the request to that leader; it adds
    /// `bytes` to the size of a group.
    #[inline]
    pub(crate) fn enter(&self, bytes: usize, payload: impl FnOnce() -> T) -> Turn<'_, T, R> {
        self.take_turn(bytes, || Some(payload()))
    }

    /// Waits for the leadership. No group is under way while the caller holds the result.
    pub(crate) fn exclusive(&self) -> Leader<'_, T, R> {
        match self.take_turn(0, || None) {
            Turn::Lead(leader) => leader,
            Turn::Follow(..) | Turn::Abandoned => {
                unreachable!("a leader batches only requests with a payload")
            }
        }
    }

    fn take_turn(&self, bytes: usize, payload: impl FnOnce() -> Option<T>) -> Turn<'_, T, R> {
        if let Some(leader) = self.try_lead() {
            return Turn::Lead(leader);
        }
        let request = Arc::new(Request {
            payload: payload(),
            bytes,
            stage: Mutex::new(Stage::Waiting),
            changed: Condvar::new(),
        });
        {
            let mut state = self.state.lock();
            // The leader may have finished meanwhile.
            if !mem::replace(&mut state.has_leader, true) {
                return Turn::Lead(Leader::new(self));
            }
            state.queued.push_back(Arc::clone(&request));
        }
        match request.wait() {
            Stage::Leading => Turn::Lead(Leader::new(self)),
            Stage::Answered(answer) => {
                let follower = Follower {
                    queue: self,
                    request,
                    reported: false,
                };
                Turn::Follow(follower, answer)
            }
            Stage::Waiting | Stage::Over { .. } => Turn::Abandoned,
        }
    }

    fn try_lead(&self) -> Option<Leader<'_, T, R>> {
        let has_leader = mem::replace(&mut self.state.lock().has_leader, true);
        (!has_leader).then(|| Leader::new(self))
    }
}

impl<T, R> Request<T, R> {
    fn set_stage(&self, stage: Stage<R>) {
        *self.stage.lock() = stage;
        self.changed.notify_one();
    }

    /// Waits for the next stage and takes it.
    fn wait(&self) -> Stage<R> {
        let mut stage = self.stage.lock();
        while matches!(*stage, Stage::Waiting) {
            stage = self.changed.wait(stage);
        }
        mem::replace(&mut *stage, Stage::Waiting)
    }
}

/// The only writer of the log. On drop, also in a panic, it passes the leadership on; the group fails
/// unless `finish` was called.
#[derive(Debug)]
pub(crate) struct Leader<'queue, T, R> {
    queue: &'queue CommitQueue<T, R>,
    group: Vec<Arc<Request<T, R>>>,
    published: bool,
}

impl<'queue, T, R> Leader<'queue, T, R> {
    fn new(queue: &'queue CommitQueue<T, R>) -> Self {
        Self {
            queue,
            group: Vec::new(),
            published: false,
        }
    }

    /// Batches queued requests from the front while their sum stays within `bytes_max`, up to the first
    /// that asks for exclusive leadership.
    #[inline]
    pub(crate) fn build_group(&mut self, bytes_max: usize) {
        let mut state = self.queue.state.lock();
        let mut space = bytes_max;
        while let Some(first) = state.queued.front()
            && first.payload.is_some()
            && let Some(rest) = space.checked_sub(first.bytes)
        {
            space = rest;
            self.group.extend(state.queued.pop_front());
        }
    }

    /// Whether the group has members beside the leader.
    #[inline]
    pub(crate) fn has_followers(&self) -> bool {
        !self.group.is_empty()
    }

    /// The requests of the group, in commit order.
    pub(crate) fn requests(&self) -> impl Iterator<Item = &T> {
        self.group
            .iter()
            .filter_map(|request| request.payload.as_ref())
    }

    /// Sends each follower its answer; calls `answer` in the order of [`requests`](Self::requests).
    #[inline]
    pub(crate) fn answer(&mut self, mut answer: impl FnMut(&T) -> R) {
        if self.group.is_empty() {
            return;
        }
        let answers: Vec<R> = self.requests().map(&mut answer).collect();
        let unreported = mem::replace(&mut self.queue.state.lock().unreported, self.group.len());
        assert_eq!(unreported, 0, "a group is answered twice");
        for (request, answer) in self.group.iter().zip(answers) {
            request.set_stage(Stage::Answered(answer));
        }
    }

    /// Waits until every follower has reported. Returns whether all of them succeeded.
    #[must_use]
    #[inline]
    pub(crate) fn wait_for_followers(&self) -> bool {
        if self.group.is_empty() {
            return true;
        }
        let mut state = self.queue.state.lock();
        while state.unreported > 0 {
            state = self.queue.followers_done.wait(state);
        }
        !state.failed
    }

    /// Reports to the group that its writes are visible, and passes the leadership on.
    #[inline]
    pub(crate) fn finish(mut self) {
        self.published = true;
    }
}

impl<T, R> Drop for Leader<'_, T, R> {
    fn drop(&mut self) {
        // I3: a leader that fails half-way still waits for the followers that have an answer.
        let followers_done = self.wait_for_followers();
        let published = self.published && followers_done;
        for request in self.group.drain(..) {
            request.set_stage(Stage::Over { published });
        }
        let mut state = self.queue.state.lock();
        state.failed = false;
        let next = state.queued.pop_front();
        state.has_leader = next.is_some(); // I1
        drop(state);
        if let Some(next) = next {
            next.set_stage(Stage::Leading);
        }
    }
}

/// A writer whose leader has written the log for it. On drop, also in a panic, it reports a failure.
#[derive(Debug)]
pub(crate) struct Follower<'queue, T, R> {
    queue: &'queue CommitQueue<T, R>,
    request: Arc<Request<T, R>>,
    reported: bool,
}

impl<T, R> Follower<'_, T, R> {
    /// Reports success and waits for the end of the group. Returns whether its writes are visible.
    #[must_use]
    pub(crate) fn done(mut self) -> bool {
        self.report(true);
        matches!(self.request.wait(), Stage::Over { published: true })
    }

    fn report(&mut self, done: bool) {
        self.reported = true;
        let mut state = self.queue.state.lock();
        state.failed |= !done;
        state.unreported -= 1;
        if state.unreported == 0 {
            self.queue.followers_done.notify_one();
        }
    }
}

impl<T, R> Drop for Follower<'_, T, R> {
    fn drop(&mut self) {
        if !self.reported {
            self.report(false);
        }
    }
}
