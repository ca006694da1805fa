//! Who may write the log now, and for whom: the hand-off behind group commit.
//!
//! Owns the leadership and the line of those who wait for it. It knows nothing of logs, memtables
//! and sequence numbers: `T` is what a waiting writer asks for, `R` what its leader answers.
//!
//! ```text
//! leader    enter -> gather -> (write the log) -> answer -> (insert own) -> settle -> (publish) -> finish
//!                                                    |                        ^                      |
//!                                                    v                        |                      v
//! follower  enter ............ waits ........... its answer -> (insert own) -> done .. waits .. published?
//! ```
//!
//! A writer that meets no leader becomes one with a single lock and without an allocation; so a
//! runtime with one thread never waits here. Everybody else stands in line, and leaves it as a
//! follower of the current leader or as the next leader.
//!
//! Invariants:
//! - I1: there is at most one leader. Leadership passes to the first in line, or is free when the
//!   line is empty: nobody waits while nobody leads.
//! - I2: the line is first come, first served: a group is a run of requests from its front.
//! - I3: a group is over before the next leader starts: each of its followers has reported.
//! - I4: every member of a group is told what became of it, whatever happens to its leader: one
//!   that gives up or panics fails its group and passes the leadership on.
//!
//! Concurrency: `state` guards the line and the reports; each request has its own small lock and
//! condition, so that a wake-up reaches exactly whom it is for. No two locks are held at once.

#[cfg(all(test, loom))]
mod models;
#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;

use crate::base::sync::{Condvar, Mutex};
use std::collections::VecDeque;
use std::mem;
use std::sync::Arc;

/// The line of writers; see the module.
#[derive(Debug)]
pub(crate) struct CommitQueue<T, R> {
    state: Mutex<State<T, R>>,
    /// Notified when the last follower of a group has reported.
    followers_done: Condvar,
}

#[derive(Debug)]
struct State<T, R> {
    /// Whether there is a leader.
    has_leader: bool,
    /// Those who wait for it, first come first.
    queued: VecDeque<Arc<Request<T, R>>>,
    /// Followers of the current group that have not reported.
    unreported: usize,
    /// Whether one of them reported failure.
    failed: bool,
}

/// One waiting writer.
#[derive(Debug)]
struct Request<T, R> {
    /// What it asks for; nothing if it wants the leadership for itself.
    payload: Option<T>,
    /// What it adds to the size of a group.
    bytes: usize,
    stage: Mutex<Stage<R>>,
    changed: Condvar,
}

/// What a waiting writer has been told.
#[derive(Debug)]
enum Stage<R> {
    /// Nothing yet.
    Waiting,
    /// It is the leader.
    Leading,
    /// Its leader's answer.
    Answered(R),
    /// Its group is over, and whether it was published.
    Over { published: bool },
}

/// What became of a writer that entered.
#[derive(Debug)]
#[must_use]
pub(crate) enum Turn<'queue, T, R> {
    /// It leads.
    Lead(Leader<'queue, T, R>),
    /// It follows a leader, which gave this answer.
    Follow(Follower<'queue, T, R>, R),
    /// Its leader took its request and gave up before it answered.
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

    /// Waits for a turn. Only if somebody leads already, `payload` is called for what that leader
    /// needs to act for the caller; it adds `bytes` to the size of the group.
    pub(crate) fn enter(&self, bytes: usize, payload: impl FnOnce() -> T) -> Turn<'_, T, R> {
        self.take_turn(bytes, || Some(payload()))
    }

    /// Waits for the leadership without being anybody's follower: no group is under way while the
    /// caller holds what this returns.
    pub(crate) fn exclusive(&self) -> Leader<'_, T, R> {
        match self.take_turn(0, || None) {
            Turn::Lead(leader) => leader,
            Turn::Follow(..) | Turn::Abandoned => {
                unreachable!("nobody gathers a request without a payload")
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
            // The leader may have gone meanwhile.
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

    /// Waits until there is something new, and takes it.
    fn wait(&self) -> Stage<R> {
        let mut stage = self.stage.lock();
        while matches!(*stage, Stage::Waiting) {
            stage = self.changed.wait(stage);
        }
        mem::replace(&mut *stage, Stage::Waiting)
    }
}

/// The one that may write the log. Dropping it, in a panic too, fails the group unless it has been
/// finished, and passes the leadership on.
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

    /// Takes requests from the front of the line into the group while together they stay within
    /// `bytes_max`, up to the first that wants the leadership for itself.
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

    /// What the group asks for, in commit order.
    pub(crate) fn requests(&self) -> impl Iterator<Item = &T> {
        self.group
            .iter()
            .filter_map(|request| request.payload.as_ref())
    }

    /// Gives each follower its answer, called for in the order of [`requests`](Self::requests), and
    /// lets it go to work.
    pub(crate) fn answer(&mut self, mut answer: impl FnMut(&T) -> R) {
        if self.group.is_empty() {
            return;
        }
        let answers: Vec<R> = self.requests().map(&mut answer).collect();
        let unreported = mem::replace(&mut self.queue.state.lock().unreported, self.group.len());
        assert_eq!(unreported, 0, "a group is answered once");
        for (request, answer) in self.group.iter().zip(answers) {
            request.set_stage(Stage::Answered(answer));
        }
    }

    /// Waits until every follower has reported; returns whether all of them are done.
    #[must_use]
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

    /// Tells the group that its writes are visible, and passes the leadership on.
    pub(crate) fn finish(mut self) {
        self.published = true;
    }
}

impl<T, R> Drop for Leader<'_, T, R> {
    fn drop(&mut self) {
        // I3: a leader that gives up half-way still waits for followers already at work.
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

/// A writer whose leader has written the log for it. Dropping it, in a panic too, reports failure.
#[derive(Debug)]
pub(crate) struct Follower<'queue, T, R> {
    queue: &'queue CommitQueue<T, R>,
    request: Arc<Request<T, R>>,
    reported: bool,
}

impl<T, R> Follower<'_, T, R> {
    /// Reports that this writer's part is done and waits for the end of the group; returns whether
    /// its writes are visible.
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
