//! The locks, with real threads where one waits.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use super::*;
use crate::base::ErrorKind;

fn table() -> LockTable {
    LockTable::new(&Arc::default(), 0)
}

fn name(key: &str) -> LockName {
    LockName::new(KeyspaceId(1), key.as_bytes())
}

/// Does not wait.
fn at_once() -> Result<Duration, Error> {
    Err(Error::new(ErrorKind::TimedOut, "is locked"))
}

/// Waits for longer than any lock here is held.
fn patiently() -> impl FnMut() -> Result<Duration, Error> {
    let mut looks = 0;
    move || {
        looks += 1;
        if looks > 1000 {
            return at_once();
        }
        Ok(Duration::from_millis(10))
    }
}

/// Whether `owner` gets the lock at once.
fn takes(table: &LockTable, owner: Owner, key: &str, mode: Mode) -> bool {
    match table.acquire(owner, &name(key), mode, at_once) {
        Ok(_) => true,
        Err(Refusal::Ended(_)) => false,
        Err(refusal) => panic!("{refusal:?}"),
    }
}

/// Lets `owner` wait for a lock on a thread; returns once it waits.
fn wait_for<'scope>(
    scope: &'scope thread::Scope<'scope, '_>,
    table: &'scope LockTable,
    owner: Owner,
    key: &'scope str,
    mode: Mode,
) -> thread::ScopedJoinHandle<'scope, Result<Option<Mode>, Refusal>> {
    let waiter = scope.spawn(move || table.acquire(owner, &name(key), mode, patiently()));
    while !table.waits.lock().contains_key(&owner) {
        thread::park_timeout(Duration::from_millis(1));
    }
    waiter
}

/// The cycle that a request closes.
fn cycle(table: &LockTable, owner: Owner, key: &str, mode: Mode) -> Vec<LockName> {
    match table.acquire(owner, &name(key), mode, patiently()) {
        Err(Refusal::Deadlock(cycle)) => cycle,
        outcome => panic!("{outcome:?}"),
    }
}

fn assert_empty(table: &LockTable) {
    assert_eq!(table.memory.bytes(), 0);
    assert!(table.shards.iter().all(|shard| shard.lock().is_empty()));
    assert!(table.waits.lock().is_empty());
}

// I1 of a lock
#[test]
fn one_owner_alone_or_several_that_share() {
    use Mode::{Exclusive, Shared};
    for (first, second, fits) in [
        (Shared, Shared, true),
        (Shared, Exclusive, false),
        (Exclusive, Shared, false),
        (Exclusive, Exclusive, false),
    ] {
        let table = table();
        let [one, other] = [0; 2].map(|_| table.new_owner());
        assert!(takes(&table, one, "a", first));
        assert_eq!(takes(&table, other, "a", second), fits);
        assert!(takes(&table, other, "b", second), "another key is free");
        assert!(takes(&table, one, "a", first), "it has the lock already");
        for key in ["a", "b"] {
            table.release(one, &name(key));
            table.release(other, &name(key));
        }
        assert_empty(&table);
    }
}

#[test]
fn a_lone_sharer_gets_the_lock_alone_and_can_share_it_again() {
    let table = table();
    let [one, other] = [0; 2].map(|_| table.new_owner());
    assert!(takes(&table, one, "a", Mode::Shared));
    assert!(takes(&table, other, "a", Mode::Shared));
    assert!(!takes(&table, one, "a", Mode::Exclusive));
    table.release(other, &name("a"));
    let before = table.acquire(one, &name("a"), Mode::Exclusive, at_once);
    assert_eq!(before.unwrap(), Some(Mode::Shared));
    assert!(!takes(&table, other, "a", Mode::Shared));
    table.share(one, &name("a"));
    assert!(takes(&table, other, "a", Mode::Shared));
}

// I2 of a lock
#[test]
fn nobody_passes_those_who_wait() {
    let table = &table();
    let [one, writer, reader] = [0; 3].map(|_| table.new_owner());
    assert!(takes(table, one, "a", Mode::Shared));
    thread::scope(|scope| {
        let writes = wait_for(scope, table, writer, "a", Mode::Exclusive);
        assert!(!takes(table, reader, "a", Mode::Shared), "a writer waits");
        let reads = wait_for(scope, table, reader, "a", Mode::Shared);
        table.release(one, &name("a"));
        assert_eq!(writes.join().unwrap().unwrap(), None);
        assert!(!reads.is_finished());
        table.release(writer, &name("a"));
        assert_eq!(reads.join().unwrap().unwrap(), None);
    });
    table.release(reader, &name("a"));
    assert_empty(table);
}

// I2 of a lock
#[test]
fn a_sharer_that_wants_it_alone_comes_first() {
    let table = &table();
    let [one, other, third] = [0; 3].map(|_| table.new_owner());
    assert!(takes(table, one, "a", Mode::Shared));
    assert!(takes(table, other, "a", Mode::Shared));
    thread::scope(|scope| {
        let last = wait_for(scope, table, third, "a", Mode::Exclusive);
        let first = wait_for(scope, table, one, "a", Mode::Exclusive);
        table.release(other, &name("a"));
        assert_eq!(first.join().unwrap().unwrap(), Some(Mode::Shared));
        assert!(!last.is_finished());
        table.release(one, &name("a"));
        last.join().unwrap().unwrap();
    });
}

// I3 of a lock
#[test]
fn those_behind_one_that_gives_up_go_on() {
    let table = &table();
    let [one, writer, reader] = [0; 3].map(|_| table.new_owner());
    assert!(takes(table, one, "a", Mode::Shared));
    thread::scope(|scope| {
        let (stop, stopped) = std::sync::mpsc::channel::<()>();
        let writes = scope.spawn(move || {
            table.acquire(writer, &name("a"), Mode::Exclusive, || {
                stopped
                    .try_recv()
                    .map_or(Ok(Duration::from_millis(1)), |()| at_once())
            })
        });
        while !table.waits.lock().contains_key(&writer) {
            thread::park_timeout(Duration::from_millis(1));
        }
        let reads = wait_for(scope, table, reader, "a", Mode::Shared);
        stop.send(()).unwrap();
        assert!(matches!(writes.join().unwrap(), Err(Refusal::Ended(_))));
        reads.join().unwrap().unwrap();
    });
}

#[test]
fn the_last_owner_of_a_cycle_is_refused() {
    for length in 2..=9_usize {
        let table = &table();
        let keys: Vec<_> = (0..length).map(|it| it.to_string()).collect();
        let owners: Vec<_> = keys.iter().map(|_| table.new_owner()).collect();
        for (owner, key) in owners.iter().zip(&keys) {
            assert!(takes(table, *owner, key, Mode::Exclusive));
        }
        thread::scope(|scope| {
            // Each waits for the next one.
            let waits = (0..length - 1)
                .map(|it| wait_for(scope, table, owners[it], &keys[it + 1], Mode::Exclusive));
            let waits: Vec<_> = waits.collect();
            let last = owners[length - 1];
            let found = cycle(table, last, &keys[0], Mode::Shared);
            let expected = keys.iter().map(|key| name(key));
            assert_eq!(found, expected.collect::<Vec<_>>());
            // It can take another lock, and its end lets the others go on, one after the other.
            assert!(takes(table, last, "free", Mode::Exclusive));
            table.release(last, &name("free"));
            table.release(last, &name(&keys[length - 1]));
            for (position, wait) in waits.into_iter().enumerate().rev() {
                wait.join().unwrap().unwrap();
                table.release(owners[position], &name(&keys[position]));
                table.release(owners[position], &name(&keys[position + 1]));
            }
        });
        assert_empty(table);
    }
}

#[test]
fn sharers_that_want_a_lock_alone_are_a_cycle() {
    let table = &table();
    let [one, other] = [0; 2].map(|_| table.new_owner());
    assert!(takes(table, one, "a", Mode::Shared));
    assert!(takes(table, other, "a", Mode::Shared));
    thread::scope(|scope| {
        let first = wait_for(scope, table, one, "a", Mode::Exclusive);
        assert_eq!(cycle(table, other, "a", Mode::Exclusive).len(), 2);
        table.release(other, &name("a"));
        assert_eq!(first.join().unwrap().unwrap(), Some(Mode::Shared));
    });
}

#[test]
fn each_sharer_of_a_lock_can_close_a_cycle() {
    for closing in 0..3 {
        let table = &table();
        let sharers = [0; 3].map(|_| table.new_owner());
        let writer = table.new_owner();
        for sharer in sharers {
            assert!(takes(table, sharer, "shared", Mode::Shared));
        }
        assert!(takes(table, writer, "own", Mode::Exclusive));
        thread::scope(|scope| {
            let writes = wait_for(scope, table, writer, "shared", Mode::Exclusive);
            let found = cycle(table, sharers[closing], "own", Mode::Exclusive);
            assert_eq!(found, [name("own"), name("shared")]);
            for sharer in sharers {
                table.release(sharer, &name("shared"));
            }
            writes.join().unwrap().unwrap();
        });
    }
}

#[test]
fn a_cycle_leads_through_the_queue() {
    let table = &table();
    let [holder, writer, reader] = [0; 3].map(|_| table.new_owner());
    assert!(takes(table, holder, "a", Mode::Shared));
    assert!(takes(table, reader, "b", Mode::Exclusive));
    thread::scope(|scope| {
        // The reader could share the lock with its holder, but waits behind the writer.
        let writes = wait_for(scope, table, writer, "a", Mode::Exclusive);
        let reads = wait_for(scope, table, reader, "a", Mode::Shared);
        assert_eq!(cycle(table, holder, "b", Mode::Exclusive).len(), 3);
        table.release(holder, &name("a"));
        writes.join().unwrap().unwrap();
        table.release(writer, &name("a"));
        reads.join().unwrap().unwrap();
    });
}

// Its owner has other locks, so a wait could close a cycle.
#[test]
fn a_lock_that_is_only_tried_is_taken_alone_or_not_at_all() {
    let table = table();
    let [one, other] = [0; 2].map(|_| table.new_owner());
    assert!(table.try_acquire(one, &name("a")));
    assert!(!takes(&table, other, "a", Mode::Shared));
    assert!(takes(&table, other, "b", Mode::Shared));
    assert!(!table.try_acquire(one, &name("b")));
    assert!(table.waits.lock().is_empty());
    table.release(other, &name("b"));
    assert!(table.try_acquire(one, &name("b")));
    for key in ["a", "b"] {
        table.release(one, &name(key));
    }
    assert_empty(&table);
}

// I1
#[test]
fn the_memory_of_locks_is_counted_and_bounded() {
    let table = table();
    let owner = table.new_owner();
    let long = "k".repeat(60_000);
    let mut taken = Vec::new();
    let refusal = loop {
        let name = name(&format!("{long}{}", taken.len()));
        match table.acquire(owner, &name, Mode::Exclusive, at_once) {
            Ok(_) => taken.push(name),
            Err(refusal) => break refusal,
        }
    };
    assert!(matches!(refusal, Refusal::TooMany));
    let bytes = table.memory.bytes();
    assert!((LOCK_BYTES_MAX..LOCK_BYTES_MAX + 100_000).contains(&bytes));
    assert!(takes(&table, owner, &format!("{long}0"), Mode::Exclusive));
    // A crash leaves as many as it leaves.
    table.restore(owner, &name("restored"), Mode::Shared);
    for name in taken.iter().chain([&name("restored")]) {
        table.release(owner, name);
    }
    assert_empty(&table);
}
