//! Queues: how much a pop costs behind the tombstones of earlier pops.
//!
//! Each pattern pops the same number of jobs and begins with an empty database. The table shows the time of each
//! pattern, also as a multiple of the time of one queue, and its slowest pop.
//!
//!     cargo run --release -p windrow-bench --example queue [pops] [seconds] [pattern]
//!
//! A pattern ends after `seconds` at the latest; its time is then extrapolated.

#![expect(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "a measurement runs on the real file system, in real time, and prints"
)]

use std::error::Error;
use std::path::Path;
use std::time::{Duration, Instant};

use windrow::{Db, Keyspace, Options, Range};

type Outcome<T> = Result<T, Box<dyn Error>>;

/// What differs from one queue that is popped at its front.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Twist {
    None,
    /// Each second pop looks from the start of the keyspace instead of the queue.
    OtherStart,
    /// One of a hundred pops finds an urgent job, which is pushed before all others.
    Urgent,
    /// The database is opened again after half of the pops.
    Reopened,
    /// Each pop takes the last job.
    Backward,
    /// Jobs are pushed while others are popped, in random order; otherwise all are there before the first pop.
    Pushes,
}

struct Pattern {
    name: &'static str,
    queues: u64,
    twist: Twist,
}

const fn pattern(name: &'static str, queues: u64, twist: Twist) -> Pattern {
    Pattern {
        name,
        queues,
        twist,
    }
}

const ONE: Pattern = pattern("one queue", 1, Twist::None);

const PATTERNS: [Pattern; 9] = [
    ONE,
    pattern("two queues in turn", 2, Twist::None),
    pattern("four queues in turn", 4, Twist::None),
    pattern("a second start", 1, Twist::OtherStart),
    pattern("urgent jobs", 1, Twist::Urgent),
    pattern("reopened", 1, Twist::Reopened),
    pattern("from the back", 1, Twist::Backward),
    pattern("pushes and pops", 1, Twist::Pushes),
    pattern("a hundred queues", 100, Twist::None),
];

/// The key of job `number` of `queue`; number 0 is urgent.
fn key(queue: u64, number: u64) -> Vec<u8> {
    format!("jobs/{queue:04}/{number:012}").into_bytes()
}

fn prefix(queue: u64) -> Vec<u8> {
    format!("jobs/{queue:04}/").into_bytes()
}

fn open(folder: &Path) -> Outcome<(Db, Keyspace)> {
    let db = Db::open(folder, Options::default())?;
    let jobs = db.keyspace("jobs")?;
    Ok((db, jobs))
}

/// What a pattern took.
struct Taken {
    pops: u64,
    time: Duration,
    worst: Duration,
}

impl Pattern {
    fn run(&self, pops: u64, limit: Duration) -> Outcome<Taken> {
        let folder = tempfile::tempdir()?;
        let (mut db, mut jobs) = open(folder.path())?;
        let mut pushed = 0;
        let mut push = |jobs: &Keyspace| {
            jobs.insert(
                key(pushed % self.queues, 1 + pushed / self.queues),
                [1; 100],
            )?;
            pushed += 1;
            windrow::Result::Ok(())
        };
        let pushes = self.twist == Twist::Pushes;
        let before = if pushes { 1000.min(pops) } else { pops };
        for _ in 0..before {
            push(&jobs)?;
        }
        let mut random = 7_u64;
        let (began, mut worst) = (Instant::now(), Duration::ZERO);
        let (mut popped, mut ahead) = (0, before);
        while popped < pops && began.elapsed() < limit {
            if self.twist == Twist::Reopened && popped == pops / 2 {
                drop((db, jobs));
                (db, jobs) = open(folder.path())?;
            }
            if pushes && before + popped < pops {
                random = random
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1);
                if (ahead == 0 || random >> 63 == 1) && popped + ahead < pops {
                    push(&jobs)?;
                    ahead += 1;
                    continue;
                }
            }
            let queue = popped % self.queues;
            if self.twist == Twist::Urgent && popped % 100 == 99 {
                jobs.insert(key(queue, 0), [1; 100])?;
                ahead += 1;
            }
            let start = Instant::now();
            let mut range: Range = if self.twist == Twist::OtherStart && popped % 2 == 1 {
                jobs.iter()?
            } else {
                jobs.prefix(prefix(queue))?
            };
            let job = if self.twist == Twist::Backward {
                range.next_back()
            } else {
                range.next()
            };
            let (job, _) = job.transpose()?.ok_or("the queue is empty")?;
            drop(range);
            jobs.remove(&job)?;
            worst = worst.max(start.elapsed());
            popped += 1;
            ahead -= 1;
        }
        let time = began.elapsed();
        drop((db, jobs));
        Ok(Taken {
            pops: popped,
            time,
            worst,
        })
    }
}

fn main() -> Outcome<()> {
    let mut arguments = std::env::args().skip(1);
    let mut number = |default: u64| arguments.next().map_or(Ok(default), |text| text.parse());
    let pops = number(200_000)?;
    let limit = Duration::from_secs(number(8)?);
    let only = arguments.next().unwrap_or_default();
    println!(
        "{:<20} {:>9} {:>9} {:>9} {:>14}",
        "pattern", "pops", "us a pop", "of one", "slowest pop us"
    );
    for pattern in PATTERNS.iter().filter(|it| it.name.contains(&only)) {
        // Runs of one queue around it, because the machine may be faster or slower from time to time.
        let mut one = Duration::ZERO;
        let mut runs = Vec::new();
        for _ in 0..3 {
            one += ONE.run(pops, limit)?.time;
            runs.push(pattern.run(pops, limit)?);
            if runs.iter().any(|run| run.pops < pops) {
                break;
            }
        }
        let count = runs.len() as f64;
        let done: u64 = runs.iter().map(|run| run.pops).sum();
        let time: Duration = runs.iter().map(|run| run.time).sum();
        let each = time.as_secs_f64() / done as f64;
        let ratio = each * pops as f64 / (one.as_secs_f64() / count);
        let worst = runs.iter().map(|run| run.worst.as_micros()).max();
        println!(
            "{:<20} {:>9} {:>9.2} {:>9.2} {:>14}",
            pattern.name,
            done / runs.len() as u64,
            each * 1e6,
            ratio,
            worst.unwrap_or_default()
        );
    }
    Ok(())
}
