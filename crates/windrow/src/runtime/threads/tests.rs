//! Workers run until the work ends and are joined; the clock advances; random numbers differ.

use super::*;
use crate::base::sync::{Condvar, Mutex};
use std::collections::BTreeSet;

/// A number of jobs, then the end.
#[derive(Default)]
struct Jobs {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    due: usize,
    done: usize,
    closed: bool,
    names: BTreeSet<String>,
}

impl Work for Jobs {
    fn run_one(&self) -> bool {
        let mut state = self.state.lock();
        if state.due == 0 {
            return false;
        }
        state.due -= 1;
        state.done += 1;
        let name = thread::current().name().unwrap_or_default().to_owned();
        state.names.insert(name);
        self.changed.notify_all();
        true
    }

    fn wait(&self) -> bool {
        let mut state = self.state.lock();
        while state.due == 0 && !state.closed {
            state = self.changed.wait(state);
        }
        !state.closed
    }
}

#[test]
fn workers_run_jobs_and_are_joined_on_drop() {
    let jobs = Arc::new(Jobs::default());
    let workers = Threads::default()
        .start(Arc::clone(&jobs) as Arc<dyn Work>, 3)
        .unwrap();
    let mut state = jobs.state.lock();
    state.due = 100;
    jobs.changed.notify_all();
    while state.done < 100 {
        state = jobs.changed.wait(state);
    }
    assert!(state.names.iter().all(|name| name.starts_with("windrow-")));
    state.closed = true;
    jobs.changed.notify_all();
    drop(state);
    drop(workers);
    assert_eq!(Arc::strong_count(&jobs), 1, "every worker has ended");
}

#[test]
fn the_clock_never_goes_back_and_sleep_advances_it() {
    let threads = Threads::default();
    let before = threads.now();
    threads.sleep(Duration::from_millis(2));
    assert!(threads.now() >= before + Duration::from_millis(2));
}

#[test]
fn random_numbers_differ() {
    let threads = Threads::default();
    let numbers: BTreeSet<u64> = (0..1000).map(|_| threads.random()).collect();
    assert_eq!(numbers.len(), 1000);
    assert!(!threads.step_instead_of_waiting(&Jobs::default()));
}
