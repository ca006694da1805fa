//! Loom models of the waits for the next change, over the real types. Run with `--cfg loom`. No wait ends by itself there, so a lost
//! wake-up is a deadlock.

use std::sync::Arc;
use std::task::{Wake, Waker};
use std::time::Duration;

use loom::thread;

use super::notice::CommitNotice;
use super::tasks::{PendingTasks, Registration, Task};
use crate::base::SequenceNumber;
use crate::base::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use crate::base::sync::{Condvar, Mutex};

/// What a feed needs of a database.
#[derive(Default)]
struct Model {
    visible: AtomicU64,
    is_closed: AtomicBool,
    /// The lock that each leader takes behind its publication.
    leadership: Mutex<()>,
    notice: CommitNotice,
    tasks: Arc<PendingTasks>,
}

/// Wakes the thread that polls for its task.
#[derive(Default)]
struct Alarm {
    has_rung: Mutex<bool>,
    changed: Condvar,
}

impl Wake for Alarm {
    fn wake(self: Arc<Self>) {
        *self.has_rung.lock() = true;
        self.changed.notify_all();
    }
}

impl Alarm {
    fn wait(&self) {
        let mut has_rung = self.has_rung.lock();
        while !*has_rung {
            has_rung = self.changed.wait(has_rung);
        }
        *has_rung = false;
    }
}

impl Model {
    /// Publishes the change `sequence`, as the leader of its group.
    fn commit(&self, sequence: SequenceNumber) {
        self.visible.store(sequence, Ordering::Release);
        drop(self.leadership.lock());
        self.notice.notify();
    }

    /// Closes, as the engine does.
    fn close(&self) {
        self.is_closed.store(true, Ordering::Release);
        self.notice.wake();
        self.tasks.end();
    }

    fn has_news(&self, next: SequenceNumber) -> bool {
        self.visible.load(Ordering::Acquire) >= next || self.is_closed.load(Ordering::Acquire)
    }

    fn pass(&self) {
        drop(self.leadership.lock());
    }

    /// Waits for the change `next`, as a thread.
    fn block(&self, next: SequenceNumber) {
        while !self.has_news(next) {
            let has_news = || self.has_news(next);
            self.notice.wait(Duration::MAX, || self.pass(), has_news);
        }
    }

    /// Waits for each change from the first to `last`, as a task.
    fn follow(&self, last: SequenceNumber) {
        let task = Registration::new(&self.tasks);
        let alarm = Arc::<Alarm>::default();
        let waker = Waker::from(Arc::clone(&alarm));
        for next in 1..=last {
            while !self.has_news(next) {
                if !task.register(next, None, &waker, |next| self.has_news(next)) {
                    alarm.wait();
                }
            }
        }
    }

    /// Wakes tasks until the end, as the thread of a database.
    fn wake_tasks(&self) {
        let has_news = |next| self.has_news(next);
        while self.tasks.wait(&self.notice, || self.pass(), has_news) {
            let due = self.tasks.take(|task| self.has_news(task.next));
            due.into_iter().for_each(Task::wake);
        }
    }
}

/// Runs `work` on a thread of the model.
fn spawn(model: &Arc<Model>, work: impl FnOnce(&Model) + Send + 'static) -> thread::JoinHandle<()> {
    let model = Arc::clone(model);
    thread::spawn(move || work(&model))
}

/// A commit wakes a thread and a task that wait for it, whenever each of them comes.
#[test]
fn a_commit_wakes_threads_and_tasks() {
    loom::model(|| {
        let model = Arc::<Model>::default();
        let wakes = spawn(&model, Model::wake_tasks);
        let task = spawn(&model, |model| model.follow(1));
        let blocked = spawn(&model, |model| model.block(1));
        model.commit(1);
        blocked.join().unwrap();
        task.join().unwrap();
        model.close();
        wakes.join().unwrap();
    });
}

/// A task that registers again misses nothing.
#[test]
fn each_commit_wakes_a_task() {
    loom::model(|| {
        let model = Arc::<Model>::default();
        let wakes = spawn(&model, Model::wake_tasks);
        let task = spawn(&model, |model| model.follow(2));
        model.commit(1);
        model.commit(2);
        task.join().unwrap();
        model.close();
        wakes.join().unwrap();
    });
}

/// A task that was behind is not lost behind one that waits for the next change.
#[test]
fn a_commit_wakes_two_tasks() {
    loom::model(|| {
        let model = Arc::<Model>::default();
        let wakes = spawn(&model, Model::wake_tasks);
        let tasks = [1, 2].map(|last| spawn(&model, move |model| model.follow(last)));
        model.commit(1);
        model.commit(2);
        for task in tasks {
            task.join().unwrap();
        }
        model.close();
        wakes.join().unwrap();
    });
}

/// A close wakes a task, and ends the thread.
#[test]
fn a_close_wakes_a_task() {
    loom::model(|| {
        let model = Arc::<Model>::default();
        let wakes = spawn(&model, Model::wake_tasks);
        let task = spawn(&model, |model| model.follow(1));
        model.close();
        task.join().unwrap();
        wakes.join().unwrap();
    });
}
