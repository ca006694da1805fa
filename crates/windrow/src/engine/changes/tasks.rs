//! The tasks that wait for the next change, and the thread that wakes them.
//!
//! A poll that finds no change registers the waker of its task. A waker is code of the user: it may be slow, may panic, and
//! may call the database, also to close it. So no writer and no job calls one. The first such poll starts a thread, which
//! waits for all tasks as a caller of `next` waits, and calls the wakers of those that `next` would answer.
//!
//! Invariants:
//! - I1: No wake-up is lost. A poll looks for news again once its waker is registered, and the thread looks at all
//!   registered tasks once it is counted as waiting. The lock of the tasks orders both looks, so the later one sees what the
//!   earlier one has missed.
//! - I2: No lock is held while a waker is called, cloned or dropped.
//! - I3: A feed has one waker at most, that of its last poll. It goes with the feed, and with an answer.
//!
//! Concurrency: any thread registers; one waits. The lock of the tasks is a leaf.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::task::Waker;
use std::time::Duration;

use super::look::check_holds;
use super::notice::CommitNotice;
use crate::base::sync::{Condvar, Mutex};
use crate::base::{Error, Result, SequenceNumber};
use crate::engine::Engine;
use crate::manifest::ChangeState;
use crate::runtime::{Work, Workers};

/// The tasks that wait for changes of a database.
#[derive(Debug, Default)]
pub(crate) struct PendingTasks {
    state: Mutex<State>,
    /// Notified when the first task registers, and at the end.
    changed: Condvar,
    /// The thread that wakes them, once a task has registered.
    workers: Mutex<Option<Box<dyn Workers>>>,
}

#[derive(Debug, Default)]
struct State {
    /// By the number of the registration.
    tasks: BTreeMap<u64, Task>,
    next_number: u64,
    has_ended: bool,
}

/// A task that waits for the change `next`.
#[derive(Debug)]
pub(super) struct Task {
    pub(super) next: SequenceNumber,
    /// The consumer of its feed.
    consumer: Option<Arc<str>>,
    waker: Waker,
}

/// The place of a feed among the tasks. The drop forgets its waker.
#[derive(Debug)]
pub(super) struct Registration {
    tasks: Arc<PendingTasks>,
    number: u64,
}

impl Registration {
    pub(super) fn new(tasks: &Arc<PendingTasks>) -> Self {
        let mut state = tasks.state.lock();
        let number = state.next_number;
        state.next_number += 1;
        Self {
            tasks: Arc::clone(tasks),
            number,
        }
    }

    /// Registers `waker`, in the place of an earlier one, until there is the change `next`. Returns whether it is
    /// there already (I1): then the waker may not be called.
    pub(super) fn register(
        &self,
        next: SequenceNumber,
        consumer: Option<&Arc<str>>,
        waker: &Waker,
        has_news: impl Fn(SequenceNumber) -> bool,
    ) -> bool {
        if !self.renew(next, waker) {
            let task = Task {
                next,
                consumer: consumer.cloned(),
                waker: waker.clone(),
            };
            let replaced = self.insert(task);
            drop(replaced); // I2
        }
        has_news(next)
    }

    /// Returns whether the registered waker wakes the same task, which now waits for `next`.
    fn renew(&self, next: SequenceNumber, waker: &Waker) -> bool {
        let mut state = self.tasks.state.lock();
        let known = state.tasks.get_mut(&self.number);
        let known = known.filter(|task| task.waker.will_wake(waker));
        known.map(|task| task.next = next).is_some()
    }

    fn insert(&self, task: Task) -> Option<Task> {
        let mut state = self.tasks.state.lock();
        if state.tasks.is_empty() {
            self.tasks.changed.notify_all();
        }
        state.tasks.insert(self.number, task)
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        let forgotten = self.tasks.state.lock().tasks.remove(&self.number);
        drop(forgotten); // I2
    }
}

impl PendingTasks {
    /// Starts the thread by `start`, unless it runs.
    fn start(&self, start: impl FnOnce() -> Result<Box<dyn Workers>>) -> Result<()> {
        let mut workers = self.workers.lock();
        if workers.is_none() {
            *workers = Some(start()?);
        }
        Ok(())
    }

    /// Blocks until a registered task may have an answer. Returns false at the end.
    pub(super) fn wait(
        &self,
        notice: &CommitNotice,
        pass: impl FnOnce(),
        has_news: impl Fn(SequenceNumber) -> bool,
    ) -> bool {
        let mut state = self.state.lock();
        while state.tasks.is_empty() {
            if state.has_ended {
                return false;
            }
            state = self.changed.wait(state);
        }
        drop(state);
        notice.wait(Duration::MAX, pass, || {
            let tasks = &self.state.lock().tasks;
            tasks.is_empty() || tasks.values().any(|task| has_news(task.next))
        });
        true
    }

    /// Takes the tasks that `is_due` finds.
    pub(super) fn take(&self, is_due: impl Fn(&Task) -> bool) -> Vec<Task> {
        let tasks = &mut self.state.lock().tasks;
        let due = tasks.iter().filter(|(_, task)| is_due(task));
        let due: Vec<u64> = due.map(|(&number, _)| number).collect();
        let due = due.iter().filter_map(|number| tasks.remove(number));
        due.collect()
    }

    /// Ends the thread, and waits for it unless a waker calls this, of whatever database.
    pub(super) fn end(&self) {
        self.state.lock().has_ended = true;
        self.changed.notify_all();
        let workers = self.workers.lock().take();
        drop(workers);
    }
}

impl Task {
    /// Whether its feed fails, because its consumer does not hold what comes next any more.
    fn is_let_go(&self, changes: &ChangeState) -> bool {
        let consumer = self.consumer.as_ref();
        consumer.is_some_and(|name| check_holds(name, changes, self.next).is_err())
    }

    /// Calls the waker. The caller holds no lock (I2). A panic is caught: other tasks wait as well.
    pub(super) fn wake(self) {
        drop(catch_unwind(AssertUnwindSafe(|| self.waker.wake())));
    }
}

/// What the thread does.
struct TaskWork(Arc<Engine>);

impl Work for TaskWork {
    fn run_one(&self) -> bool {
        self.0.wake_tasks()
    }

    fn wait(&self) -> bool {
        let engine = &*self.0;
        let has_news = |next| engine.has_news(next);
        engine
            .tasks
            .wait(&engine.notice, || engine.commits.pass(), has_news)
    }
}

impl Engine {
    /// Starts the thread that wakes tasks, unless it runs.
    ///
    /// # Errors
    /// `Io` if the system allows no more threads; `Closed`.
    pub(super) fn start_waking(self: &Arc<Self>) -> Result<()> {
        self.tasks.start(|| {
            // Under the lock of the workers, which a close takes afterwards.
            self.check_open()?;
            let work = Arc::new(TaskWork(Arc::clone(self)));
            let started = self.options.runtime.start(work, 1);
            started.map_err(|error| Error::io("start a thread for", &self.directory, error))
        })
    }

    /// Wakes the tasks that `next` would answer. Returns whether there are any.
    fn wake_tasks(&self) -> bool {
        let is_poisoned = self.poison.is_set();
        let mut due = self
            .tasks
            .take(|task| is_poisoned || self.has_news(task.next));
        if due.is_empty() {
            due = self.catalog.with_state(|state| {
                let is_due = |task: &Task| task.is_let_go(&state.changes);
                self.tasks.take(is_due)
            });
        }
        let is_any = !due.is_empty();
        due.into_iter().for_each(Task::wake);
        is_any
    }

    /// Wakes all tasks and ends their thread. The database is closed, and the caller holds no lock: a waker may take any.
    pub(in crate::engine) fn end_tasks(&self) {
        self.tasks.end();
        // A runtime without threads has not woken them.
        self.wake_tasks();
    }
}
