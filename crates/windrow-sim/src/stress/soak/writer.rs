//! The process that writes: two lanes of batches, the care for the files, the archive and the feed.
//!
//! A full disk refuses writes; then a lane tries the same batch again. Nothing else may fail.
//!
//! Concurrency: each thread has its own work; the lanes share how many of their batches are acknowledged.

use super::child::{Event, Report, Stage, options, unless_full};
use super::full_disk::FullDisk;
use super::{backups, replica};
use crate::session::verify;
use crate::stress::lanes::{Counts, KEYSPACES, LANES, Model, Planned, add_mark};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;
use windrow::runtime::Runtime;
use windrow::{Batch, Db, Keyspace, Result};

/// The longest pause between two batches of a lane, in microseconds.
const PAUSE_MAX: u64 = 6_000;
/// Between two tries on a full disk.
const RETRY: Duration = Duration::from_millis(20);

/// Writes succeed again so soon after the disk is not full any more.
const LATE: Duration = Duration::from_secs(30);

/// Runs the process. A quiet one writes no batch.
pub(super) fn run(stage: &Stage, is_quiet: bool) -> Result<()> {
    let Some((db, keyspaces)) = open(stage)? else {
        return Ok(());
    };
    let mut model = Model::new(stage.seed);
    let counts = model.check(&db, stage.acknowledged.get(), "the writer's open")?;
    stage.happened(Event::Opened);
    for (lane, count) in counts.into_iter().enumerate() {
        // What was found counts as acknowledged: it must never be lost again.
        stage.acknowledged.set(lane, count).expect("it is written");
    }
    let lanes = Lanes {
        stage,
        db: &db,
        keyspaces: &keyspaces,
        acknowledged: counts.map(AtomicU64::new),
    };
    thread::scope(|scope| {
        let mut threads = Vec::new();
        for lane in 0..if is_quiet { 0 } else { LANES } {
            let lanes = &lanes;
            threads.push(scope.spawn(move || stage.guarded(|| lanes.write(lane))));
        }
        threads.push(scope.spawn(|| stage.guarded(|| care(stage, &db, &keyspaces))));
        threads.push(scope.spawn(|| stage.guarded(|| backups::archive(stage, &db))));
        threads.push(scope.spawn(|| stage.guarded(|| replica::serve(stage, &db))));
        threads
            .into_iter()
            .try_for_each(|thread| thread.join().expect("no thread of the writer panics"))
    })?;
    let last = model.check(&db, stage.acknowledged.get(), "the writer's end")?;
    stage.report(Report::Last(last));
    drop(keyspaces);
    unless_full(db.close())?;
    Ok(())
}

/// Opens the database; `None` if the end comes before there is space for that.
fn open(stage: &Stage) -> Result<Option<(Db, [Keyspace; 2])>> {
    let mut options = options().with_vfs(Arc::new(FullDisk(stage.space.clone())));
    // Little more than what is written while nobody is killed for long: then the consumer of the replica falls behind.
    let interval = u64::try_from(stage.interval.as_millis()).unwrap_or(u64::MAX);
    options.change_retention.bytes = (192 << 10) + (interval << 6);
    let attempt = || {
        let db = Db::open(stage.db(), options.clone())?;
        // Keyspaces with and without values in the log of values.
        let mut other = options.keyspace.clone();
        other.memtable_bytes /= 2;
        other.large_from = 8 << 10;
        let keyspaces = [
            db.keyspace(KEYSPACES[0])?,
            db.keyspace_with(KEYSPACES[1], other)?,
        ];
        Ok((db, keyspaces))
    };
    while !stage.is_over() {
        if let Some(opened) = unless_full(attempt())? {
            return Ok(Some(opened));
        }
        stage.sleep(RETRY);
    }
    Ok(None)
}

struct Lanes<'a> {
    stage: &'a Stage,
    db: &'a Db,
    keyspaces: &'a [Keyspace; 2],
    acknowledged: [AtomicU64; LANES],
}

impl Lanes<'_> {
    fn write(&self, lane: usize) -> Result<()> {
        let mut random = self.stage.random(lane as u64);
        let mut batch = Batch::new();
        let mut refused_until = None;
        while !self.stage.is_over() {
            let acknowledged: Counts =
                std::array::from_fn(|lane| self.acknowledged[lane].load(Ordering::SeqCst));
            let number = acknowledged[lane];
            let planned = Planned::new(self.stage.seed, lane, number);
            batch.clear();
            add_mark(&mut batch, self.keyspaces, lane, number + 1, acknowledged)?;
            planned.add_to(&mut batch, self.keyspaces)?;
            let written = self.db.write_with(&batch, planned.durability);
            if unless_full(written)?.is_none() {
                self.stage.happened(Event::Refused);
                let now = self.stage.clock.now();
                let until = refused_until.filter(|_| self.stage.space.is_plenty());
                let until = *refused_until.insert(until.unwrap_or(now + LATE));
                assert!(
                    now < until,
                    "lane {lane} is refused though the disk is not full"
                );
                self.stage.sleep(RETRY);
                continue;
            }
            refused_until = None;
            self.acknowledged[lane].store(number + 1, Ordering::SeqCst);
            self.stage
                .acknowledged
                .set(lane, number + 1)
                .expect("it is written");
            let pause = random.below(PAUSE_MAX);
            self.stage.sleep(Duration::from_micros(pause));
        }
        Ok(())
    }
}

/// Flushes, compacts, verifies.
fn care(stage: &Stage, db: &Db, keyspaces: &[Keyspace; 2]) -> Result<()> {
    let mut random = stage.random(10);
    while !stage.is_over() {
        stage.sleep(Duration::from_millis(random.below(1000)));
        match random.below(8) {
            0 => drop(unless_full(db.flush())?),
            1 => {
                let keyspace = &keyspaces[random.index(2)];
                unless_full(keyspace.compact_range::<&[u8]>(..))?;
            }
            2..5 => drop(unless_full(db.persist())?),
            5 => {
                verify(db)?;
                stage.happened(Event::Verified);
            }
            _ => {}
        }
    }
    Ok(())
}
