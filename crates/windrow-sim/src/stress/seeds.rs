//! Which seeds a stress test runs, the sum of what they did, and how to repeat a failure.

use clap::{Args, Command};
use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

/// Which seeds a stress test runs.
#[derive(Debug, Clone, Copy, Args)]
pub struct Seeds {
    /// The first seed.
    #[arg(long, default_value_t = 1)]
    pub first_seed: u64,
    /// The number of seeds, unless the stress test ends by another rule.
    #[arg(long = "seeds", default_value_t = 8)]
    pub count: u64,
    /// Threads.
    #[arg(long, default_value_t = 2)]
    pub threads: usize,
    /// Run the first seed alone.
    #[arg(long)]
    pub only: bool,
}

impl Seeds {
    /// Whether `seed` is one of these.
    pub(super) fn contain(&self, seed: u64) -> bool {
        let count = if self.only { 1 } else { self.count };
        seed - self.first_seed < count
    }

    /// Calls `run` for each seed and returns the sum.
    pub(super) fn sum<T: Tally>(&self, run: impl Fn(u64) -> T + Sync) -> T {
        self.sum_while(|seed, _| self.contain(seed), run)
    }

    /// Calls `run` for the seeds from the first one, while `is_wanted` accepts the seed and the sum so far, and until a
    /// seed panics. Returns the sum.
    pub(super) fn sum_while<T: Tally>(
        &self,
        is_wanted: impl Fn(u64, &T) -> bool + Sync,
        run: impl Fn(u64) -> T + Sync,
    ) -> T {
        let sum = Mutex::new(T::default());
        let lock = || sum.lock().unwrap_or_else(PoisonError::into_inner);
        let next = AtomicU64::new(self.first_seed);
        let failed = AtomicBool::new(false);
        let run_some = || {
            loop {
                let seed = next.fetch_add(1, Ordering::Relaxed);
                if failed.load(Ordering::Relaxed) || !is_wanted(seed, &lock()) {
                    break;
                }
                let guard = OnPanic(&failed);
                let tally = run(seed);
                drop(guard);
                lock().add(tally);
            }
        };
        thread::scope(|scope| {
            for _ in 0..if self.only { 1 } else { self.threads } {
                scope.spawn(run_some);
            }
        });
        sum.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a stress test did.
pub trait Tally: fmt::Display + Default + Send {
    /// Adds what another seed did.
    fn add(&mut self, other: Self);
}

/// Notes a panic.
#[derive(Debug)]
struct OnPanic<'a>(&'a AtomicBool);

impl Drop for OnPanic<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.store(true, Ordering::Relaxed);
        }
    }
}

/// The plan that the command line makes of no arguments.
pub fn default_plan<P: Args>() -> P {
    let command = P::augment_args(Command::new("plan").no_binary_name(true));
    let matches = command.get_matches_from::<_, &str>([]);
    P::from_arg_matches(&matches).expect("every argument has a default")
}

/// Prints the command that repeats a run if the run panics.
#[derive(Debug)]
pub(super) struct Replay {
    command: String,
    /// How far the run has come.
    place: String,
}

impl Replay {
    /// The run of `stress_test` on `seed` with these further arguments.
    pub(super) fn new(stress_test: &str, seed: u64, arguments: &str) -> Self {
        Self {
            command: format!(
                "cargo run --release -p windrow-sim -- {stress_test} --only --first-seed {seed} {arguments}"
            ),
            place: String::new(),
        }
    }

    /// Notes how far the run has come.
    pub(super) fn at(&mut self, place: String) {
        self.place = place;
    }
}

impl Drop for Replay {
    fn drop(&mut self) {
        if thread::panicking() {
            let Self { command, place } = self;
            #[expect(clippy::print_stderr, reason = "how to repeat what just failed")]
            {
                eprintln!("failed at {place}\nreplay: {command}");
            }
        }
    }
}
