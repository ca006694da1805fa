//! A job queue: workers take jobs from its head, and no job runs twice, not even after a crash of a worker.
//!
//! A job moves from `waiting/` to `running/` in one transaction, and is removed when it is done. Two workers that read
//! the same head cannot both move it: the second commit is a conflict, and finds another head.
//!
//! `cargo run --release --example job_queue`

#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::error::Error;
use std::thread;

use windrow::{Db, Keyspace, Options};

const JOBS: u64 = 20_000;
const WORKERS: usize = 4;

/// A claimed job: its number and what is to be done.
type Job = (Vec<u8>, Vec<u8>);

/// Takes the first waiting job.
fn claim(db: &Db, jobs: &Keyspace) -> windrow::Result<Option<Job>> {
    loop {
        let Some(first) = jobs.prefix("waiting/")?.next() else {
            return Ok(None);
        };
        let (waiting, _) = first?;
        let number = waiting["waiting/".len()..].to_vec();
        let claimed = db.transact(|transaction| {
            // Another worker may have taken it since.
            let Some(work) = transaction.get(jobs, &waiting)? else {
                return Ok(None);
            };
            transaction.remove(jobs, &waiting)?;
            transaction.insert(jobs, running(&number), &work)?;
            Ok(Some(work))
        })?;
        if let Some(work) = claimed {
            return Ok(Some((number, work)));
        }
    }
}

fn running(number: &[u8]) -> Vec<u8> {
    [b"running/", number].concat()
}

/// Works until no job waits; returns the number of jobs that this worker has done.
fn work(db: &Db, jobs: &Keyspace, done: &Keyspace) -> windrow::Result<u64> {
    let mut count = 0;
    while let Some((number, _work)) = claim(db, jobs)? {
        // The work would be done here.
        let is_first = done.insert_if_absent(&number, [])?;
        assert!(is_first, "a job ran twice");
        jobs.remove(running(&number))?;
        count += 1;
    }
    Ok(count)
}

/// Lets jobs wait again whose worker has crashed; for the start of the program.
fn recover(db: &Db, jobs: &Keyspace) -> windrow::Result<()> {
    for left in jobs.prefix("running/")? {
        let (key, work) = left?;
        db.transact(|transaction| {
            transaction.remove(jobs, &key)?;
            let waiting = [b"waiting/", &key["running/".len()..]].concat();
            transaction.insert(jobs, waiting, &work)
        })?;
    }
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let db = Db::open(folder.path(), Options::default())?;
    let (jobs, done) = (db.keyspace("jobs")?, db.keyspace("done")?);
    recover(&db, &jobs)?;
    for number in 0..JOBS {
        jobs.insert(format!("waiting/{number:08}"), "send a letter")?;
    }
    let counts = thread::scope(|scope| {
        let workers: Vec<_> = (0..WORKERS)
            .map(|_| scope.spawn(|| work(&db, &jobs, &done)))
            .collect();
        let counts = workers.into_iter().map(|worker| match worker.join() {
            Ok(count) => count,
            Err(panic) => std::panic::resume_unwind(panic),
        });
        counts.collect::<windrow::Result<Vec<u64>>>()
    })?;
    println!("{counts:?} jobs by worker");
    assert_eq!(counts.iter().sum::<u64>(), JOBS);
    assert!(jobs.is_empty()?);
    assert_eq!(done.count::<&[u8]>(..)?, JOBS);
    db.close()?;
    Ok(())
}
