//! The queue of writers behind group commit: one leader at a time, and the group it commits.
//!
//! Owns the leadership and the queued writers. It knows nothing of logs, memtables and sequence
//! numbers: `T` is the request of a queued writer, `A` the answer of its leader, `D` what the leader has done for it.
//!
//! ```text
//! leader    enter -> build_group -> (write log) -> answer -> (insert) -> wait_for_followers -> (publish) -> finish
//!                                                    |                       ^                                |
//!                                                    v                       |                                v
//! follower  enter ...................... waits .. its answer -> (insert) -> done ................ waits .. published?
//!
//! leader    enter -> build_group -> (write log, insert for all, publish) -> finish_with
//!                                                                               |
//!                                                                               v
//! member    enter ...................................................... waits .. what was done
//! ```
//!
//! The second form wakes a member once, so it is the cheaper one unless there is much to insert.
//!
//! Without a leader, a writer becomes the leader with one lock and without an allocation. So a runtime
//! with one thread never waits here. Every other writer enters the queue. It leaves the queue as a
//! follower of a leader or as a leader.
//!
//! The leadership is not reserved for the first queued writer: it would be idle until that thread runs. A leader that
//! ends frees it and notifies the first queued writer, and a writer that comes meanwhile may take it. That one takes the
//! queued writers into its group, and comes last itself, so it overtakes nobody. A writer that asks for exclusive
//! leadership waits behind those in the queue. Only such a writer, or one that no group can contain, gets the leadership
//! handed over.
//!
//! A waiting writer looks for news a few hundred times before it sleeps, since a small commit takes less time than to
//! wake a thread.
//!
//! Invariants:
//! - I1: There is at most one leader. If there is none, the first queued writer knows that it may lead. So no writer
//!   waits without a leader.
//! - I2: The queue is first in, first out: a group is a prefix of it.
//! - I3: A group is over before the next leader starts: each of its followers has reported.
//! - I4: Every member of a group learns its outcome. A leader that returns early or panics fails its
//!   group and gives the leadership up.
//!
//! Concurrency: `state` guards the queue and the reports. Each request has a lock and a condition of
//! its own, so a wake-up reaches exactly one writer. No thread holds two locks at once.

#[cfg(all(test, loom))]
mod models;
#[cfg(all(test, not(any(loom, shuttle))))]
mod tests;

use crate::base::sync::atomic::{AtomicBool, Ordering};
use crate::base::sync::{Condvar, Mutex};
use std::collections::VecDeque;
use std::mem;
use std::sync::Arc;

/// How often a waiting writer looks for news before it sleeps: some microseconds.
#[cfg(not(any(loom, shuttle)))]
const LOOKS: u32 = 200;
/// How often a waiting writer looks for news before it sleeps: some microseconds.
#[cfg(any(loom, shuttle))]
const LOOKS: u32 = 0;

/// The queue of writers; see the module.
#[derive(Debug)]
pub(crate) struct CommitQueue<T, A, D> {
    state: Mutex<State<T, A, D>>,
    /// The most bytes of a group, without its leader.
    group_bytes_max: usize,
    /// Notified after the last follower of a group has reported.
    followers_done: Condvar,
}

#[derive(Debug)]
struct State<T, A, D> {
    /// Whether there is a leader.
    has_leader: bool,
    /// The writers that wait for a turn, oldest first.
    queued: VecDeque<Arc<Request<T, A, D>>>,
    /// Followers of the current group that have not reported.
    unreported: usize,
    /// Whether any of them reported a failure.
    failed: bool,
}

/// One queued writer.
#[derive(Debug)]
struct Request<T, A, D> {
    /// Its request; `None` if it asks for exclusive leadership.
    payload: Option<T>,
    /// How much it adds to the size of a group.
    bytes: usize,
    progress: Mutex<Progress<A, D>>,
    /// Whether the stage has changed since the writer took it.
    has_news: AtomicBool,
    changed: Condvar,
}

/// How far a queued writer is.
#[derive(Debug)]
struct Progress<A, D> {
    stage: Stage<A, D>,
    is_asleep: bool,
}

/// The progress of a queued writer.
#[derive(Debug)]
enum Stage<A, D> {
    /// Nothing has happened since it looked.
    Waiting,
    /// It was the first in the queue when the leadership became free.
    MayLead,
    /// It is the leader.
    Leading,
    /// Its leader has answered.
    Answered(A),
    /// Its leader has done everything for it.
    Done(D),
    /// Its group is over; it was published or not.
    Over { published: bool },
}

/// The role of a writer that entered.
#[derive(Debug)]
#[must_use]
pub(crate) enum Turn<'queue, T, A, D> {
    /// It leads.
    Lead(Leader<'queue, T, A, D>),
    /// It follows a leader, which gave this answer.
    Follow(Follower<'queue, T, A, D>, A),
    /// A leader has done this for it.
    Done(D),
    /// Its leader took its request and failed before it answered.
    Abandoned,
}

impl<T, A, D> CommitQueue<T, A, D> {
    /// A queue whose groups have at most `group_bytes_max` bytes, without their leader.
    pub(crate) fn new(group_bytes_max: usize) -> Self {
        Self {
            state: Mutex::new(State {
                has_leader: false,
                queued: VecDeque::new(),
                unreported: 0,
                failed: false,
            }),
            group_bytes_max,
            followers_done: Condvar::new(),
        }
    }

    /// Waits for a turn. If another writer leads, calls `payload` for the request to a leader; it adds
    /// `bytes` to the size of a group.
    #[inline]
    pub(crate) fn enter(&self, bytes: usize, payload: impl FnOnce() -> T) -> Turn<'_, T, A, D> {
        self.take_turn(bytes, true, || Some(payload()))
    }

    /// Waits for the leadership. No group is under way while the caller holds the result.
    pub(crate) fn exclusive(&self) -> Leader<'_, T, A, D> {
        match self.take_turn(0, false, || None) {
            Turn::Lead(leader) => leader,
            Turn::Follow(..) | Turn::Done(_) | Turn::Abandoned => {
                unreachable!("a leader batches only requests with a payload")
            }
        }
    }

    /// Takes and releases the lock that every leader takes when it gives the leadership up.
    pub(crate) fn pass(&self) {
        drop(self.state.lock());
    }

    /// Without `may_pass` the writer waits behind those in the queue.
    fn take_turn(
        &self,
        bytes: usize,
        may_pass: bool,
        payload: impl FnOnce() -> Option<T>,
    ) -> Turn<'_, T, A, D> {
        if let Some(leader) = self.try_lead(&mut self.state.lock(), may_pass) {
            return Turn::Lead(leader);
        }
        let request = Arc::new(Request::new(payload(), bytes));
        {
            let mut state = self.state.lock();
            // The leader may have finished meanwhile.
            if let Some(leader) = self.try_lead(&mut state, may_pass) {
                return Turn::Lead(leader);
            }
            state.queued.push_back(Arc::clone(&request));
        }
        loop {
            return match request.wait() {
                Stage::MayLead => match self.try_lead_as(&request) {
                    Some(leader) => Turn::Lead(leader),
                    None => continue,
                },
                Stage::Leading => Turn::Lead(Leader::new(self)),
                Stage::Answered(answer) => {
                    let follower = Follower {
                        queue: self,
                        request,
                        reported: false,
                    };
                    Turn::Follow(follower, answer)
                }
                Stage::Done(done) => Turn::Done(done),
                Stage::Waiting | Stage::Over { .. } => Turn::Abandoned,
            };
        }
    }

    /// Takes the leadership if it is free and, without `may_pass`, nobody waits for it.
    #[inline]
    fn try_lead(&self, state: &mut State<T, A, D>, may_pass: bool) -> Option<Leader<'_, T, A, D>> {
        if state.has_leader || !may_pass && !state.queued.is_empty() {
            return None;
        }
        state.has_leader = true;
        Some(Leader::new(self))
    }

    /// Takes the leadership for the first queued writer, unless another one has it, or has taken `request` into its
    /// group.
    fn try_lead_as(&self, request: &Arc<Request<T, A, D>>) -> Option<Leader<'_, T, A, D>> {
        let mut state = self.state.lock();
        let first = state.queued.front();
        if state.has_leader || !first.is_some_and(|first| Arc::ptr_eq(first, request)) {
            return None;
        }
        state.queued.pop_front();
        state.has_leader = true;
        Some(Leader::new(self))
    }

    /// Frees the leadership, or hands it over to a first queued writer that no group can contain.
    fn give_up_leadership(&self) {
        let mut state = self.state.lock();
        state.failed = false;
        let must_lead = |first: &Request<T, A, D>| {
            first.payload.is_none() || first.bytes > self.group_bytes_max
        };
        let (first, stage) = if state.queued.front().is_some_and(|first| must_lead(first)) {
            (state.queued.pop_front(), Stage::Leading)
        } else {
            state.has_leader = false;
            (state.queued.front().cloned(), Stage::MayLead)
        };
        drop(state);
        if let Some(first) = first {
            first.set_stage(stage); // I1
        }
    }
}

impl<T, A, D> Request<T, A, D> {
    fn new(payload: Option<T>, bytes: usize) -> Self {
        Self {
            payload,
            bytes,
            progress: Mutex::new(Progress {
                stage: Stage::Waiting,
                is_asleep: false,
            }),
            has_news: AtomicBool::new(false),
            changed: Condvar::new(),
        }
    }

    fn set_stage(&self, stage: Stage<A, D>) {
        let mut progress = self.progress.lock();
        if matches!(stage, Stage::MayLead) && !matches!(progress.stage, Stage::Waiting) {
            // The leader after the one that says so was faster.
            return;
        }
        progress.stage = stage;
        self.has_news.store(true, Ordering::Relaxed);
        if mem::replace(&mut progress.is_asleep, false) {
            drop(progress);
            self.changed.notify_one();
        }
    }

    /// Waits for the next stage and takes it.
    fn wait(&self) -> Stage<A, D> {
        for _ in 0..LOOKS {
            if self.has_news.load(Ordering::Relaxed) {
                break;
            }
            std::hint::spin_loop();
        }
        let mut progress = self.progress.lock();
        while matches!(progress.stage, Stage::Waiting) {
            progress.is_asleep = true;
            progress = self.changed.wait(progress);
        }
        progress.is_asleep = false;
        self.has_news.store(false, Ordering::Relaxed);
        mem::replace(&mut progress.stage, Stage::Waiting)
    }
}

/// The only writer of the log. On drop, also in a panic, it gives the leadership up; the group fails
/// unless `finish` or `finish_with` was called.
#[derive(Debug)]
pub(crate) struct Leader<'queue, T, A, D> {
    queue: &'queue CommitQueue<T, A, D>,
    group: Vec<Arc<Request<T, A, D>>>,
    published: bool,
}

impl<'queue, T, A, D> Leader<'queue, T, A, D> {
    #[inline]
    fn new(queue: &'queue CommitQueue<T, A, D>) -> Self {
        Self {
            queue,
            group: Vec::new(),
            published: false,
        }
    }

    /// Batches queued requests from the front while their sum stays within the bound of the queue, up to the first
    /// that asks for exclusive leadership.
    #[inline]
    pub(crate) fn build_group(&mut self) {
        let mut state = self.queue.state.lock();
        let mut space = self.queue.group_bytes_max;
        while let Some(first) = state.queued.front()
            && first.payload.is_some()
            && let Some(rest) = space.checked_sub(first.bytes)
        {
            space = rest;
            self.group.extend(state.queued.pop_front());
        }
    }

    /// Whether the group has no member beside the leader.
    #[inline]
    pub(crate) fn is_alone(&self) -> bool {
        self.group.is_empty()
    }

    /// The bytes of the members beside the leader.
    #[inline]
    pub(crate) fn bytes(&self) -> usize {
        self.group.iter().map(|request| request.bytes).sum()
    }

    /// The requests of the group, in commit order. The leader comes last.
    pub(crate) fn requests(&self) -> impl Iterator<Item = &T> {
        self.group
            .iter()
            .filter_map(|request| request.payload.as_ref())
    }

    /// Sends each follower its answer; calls `answer` in the order of [`requests`](Self::requests).
    pub(crate) fn answer(&mut self, mut answer: impl FnMut(&T) -> A) {
        if self.is_alone() {
            return;
        }
        let answers: Vec<A> = self.requests().map(&mut answer).collect();
        let unreported = mem::replace(&mut self.queue.state.lock().unreported, self.group.len());
        assert_eq!(unreported, 0, "a group is answered twice");
        for (request, answer) in self.group.iter().zip(answers) {
            request.set_stage(Stage::Answered(answer));
        }
    }

    /// Waits until every follower with an answer has reported. Returns whether all of them succeeded.
    #[must_use]
    #[inline]
    pub(crate) fn wait_for_followers(&self) -> bool {
        if self.is_alone() {
            return true;
        }
        let mut state = self.queue.state.lock();
        while state.unreported > 0 {
            state = self.queue.followers_done.wait(state);
        }
        !state.failed
    }

    /// Reports to the group that its writes are visible, and gives the leadership up.
    #[inline]
    pub(crate) fn finish(mut self) {
        self.published = true;
    }

    /// Gives the leadership up and reports to each other member what was done for it; calls `done` in the order of
    /// [`requests`](Self::requests). The group has got no answers.
    #[inline]
    pub(crate) fn finish_with(mut self, mut done: impl FnMut(&T) -> D) {
        let outcomes: Vec<D> = self.requests().map(&mut done).collect();
        let group = mem::take(&mut self.group);
        drop(self);
        for (request, done) in group.iter().zip(outcomes) {
            request.set_stage(Stage::Done(done));
        }
    }
}

impl<T, A, D> Drop for Leader<'_, T, A, D> {
    fn drop(&mut self) {
        // I3: a leader that fails half-way still waits for the followers that have an answer.
        let followers_done = self.wait_for_followers();
        let published = self.published && followers_done;
        self.queue.give_up_leadership();
        for request in self.group.drain(..) {
            request.set_stage(Stage::Over { published });
        }
    }
}

/// A writer whose leader has written the log for it. On drop, also in a panic, it reports a failure.
#[derive(Debug)]
pub(crate) struct Follower<'queue, T, A, D> {
    queue: &'queue CommitQueue<T, A, D>,
    request: Arc<Request<T, A, D>>,
    reported: bool,
}

impl<T, A, D> Follower<'_, T, A, D> {
    /// Reports success and waits for the end of the group. Returns whether its writes are visible.
    #[must_use]
    pub(crate) fn done(mut self) -> bool {
        self.report(true);
        loop {
            match self.request.wait() {
                // It was said before the request became a member of the group.
                Stage::MayLead => {}
                stage => return matches!(stage, Stage::Over { published: true }),
            }
        }
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

impl<T, A, D> Drop for Follower<'_, T, A, D> {
    fn drop(&mut self) {
        if !self.reported {
            self.report(false);
        }
    }
}
