//! Several threads that change the same keys.
//!
//! Syncs are slow, so writers meet in groups, where a member can conflict with an earlier one.

use std::collections::BTreeSet;
use std::thread;

use windrow::{Durability, Isolation, Result, Transaction};

use super::Store;
use super::common::Random;

const THREADS: u64 = 4;

fn number(value: Option<Vec<u8>>) -> u64 {
    value.map_or(0, |value| u64::from_le_bytes(value.try_into().unwrap()))
}

/// Runs `work` with the number of each thread. Returns what each one returned.
fn on_threads<R: Send>(work: impl Fn(u64) -> R + Sync) -> Vec<R> {
    thread::scope(|scope| {
        let work = &work;
        let threads: Vec<_> = (0..THREADS)
            .map(|thread| scope.spawn(move || work(thread)))
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .collect()
    })
}

#[test]
fn no_increment_is_lost() {
    const INCREMENTS: u64 = 150;
    let store = Store::new();
    let keyspace = &store.keyspace;
    on_threads(|thread| {
        for step in 0..INCREMENTS {
            let isolation = match thread % 2 {
                0 => Isolation::Serializable,
                _ => Isolation::Snapshot,
            };
            let durability = match step % 4 {
                0 => Durability::Sync,
                _ => Durability::Buffered,
            };
            let increment = |it: &Transaction| -> Result<()> {
                let old = number(it.get(keyspace, "counter")?);
                it.insert(keyspace, "counter", (old + 1).to_le_bytes())
            };
            store
                .db
                .transact_with(isolation, durability, increment)
                .unwrap();
            let increment = |old: Option<&[u8]>| {
                Some((number(old.map(<[u8]>::to_vec)) + 1).to_le_bytes().to_vec())
            };
            keyspace.update("counter", increment).unwrap();
        }
    });
    let counter = number(keyspace.get("counter").unwrap());
    assert_eq!(counter, 2 * THREADS * INCREMENTS);
}

#[test]
fn each_job_is_claimed_once() {
    const JOBS: u64 = 300;
    let store = Store::new();
    let keyspace = &store.keyspace;
    for job in 0..JOBS {
        keyspace.insert(job.to_be_bytes(), "job").unwrap();
    }
    let claimed = on_threads(|thread| {
        let mut claimed = Vec::new();
        loop {
            let job = if thread % 2 == 0 {
                let claim = |it: &Transaction| -> Result<Option<Vec<u8>>> {
                    let Some(first) = it.iter(keyspace)?.next() else {
                        return Ok(None);
                    };
                    let (key, _) = first?;
                    it.remove(keyspace, &key)?;
                    Ok(Some(key))
                };
                store.db.transact(claim).unwrap()
            } else {
                let first = keyspace.first_key_value().unwrap();
                match first {
                    None => None,
                    Some((key, _)) if keyspace.fetch_remove(&key).unwrap().is_some() => Some(key),
                    Some(_) => continue,
                }
            };
            match job {
                Some(job) => claimed.push(job),
                None => break claimed,
            }
        }
    });
    let claimed = claimed.concat();
    assert_eq!(claimed.len() as u64, JOBS);
    assert_eq!(
        claimed.into_iter().collect::<BTreeSet<_>>().len() as u64,
        JOBS
    );
}

#[test]
fn no_write_skew_in_a_group() {
    // At least one of both keys has a value: each thread removes one only while the other has a value.
    let store = Store::with(&[("0", "on"), ("1", "on")]);
    let keyspace = &store.keyspace;
    on_threads(|thread| {
        let mut random = Random(thread + 1);
        for _ in 0..200 {
            let (mine, other) = match random.below(2) {
                0 => ("0", "1"),
                _ => ("1", "0"),
            };
            let switch = |it: &Transaction| -> Result<()> {
                if it.iter(keyspace)?.count() == 2 {
                    it.remove(keyspace, mine)
                } else {
                    it.insert(keyspace, mine, "on")?;
                    it.insert(keyspace, other, "on")
                }
            };
            let durability = Durability::Sync;
            store
                .db
                .transact_with(Isolation::Serializable, durability, switch)
                .unwrap();
            assert!(!keyspace.is_empty().unwrap(), "both were removed");
        }
    });
}
