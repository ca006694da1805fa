//! Four threads transfer money between the same accounts, and none of it is lost.
//!
//! A transfer reads two balances and writes both, in one transaction that is tried again after a conflict. It is refused
//! if the account has too little. A counter of transfers needs no transaction: `update` changes one key in one step.
//!
//! `cargo run --example bank`

#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::error::Error;
use std::thread;

use windrow::{Db, Keyspace, Options, Result, Transaction};

const ACCOUNTS: u64 = 10;
const MONEY: u64 = 100;
const THREADS: u64 = 4;
const TRANSFERS: u64 = 500;

fn amount(stored: Option<&[u8]>) -> u64 {
    let stored = stored.and_then(|bytes| bytes.try_into().ok());
    stored.map_or(0, u64::from_be_bytes)
}

/// Moves `money`, unless `from` has less. Returns whether it was moved.
fn transfer(db: &Db, accounts: &Keyspace, from: u64, to: u64, money: u64) -> Result<bool> {
    db.transact(|transaction: &Transaction| {
        let read = |account: u64| -> Result<u64> {
            let stored = transaction.get(accounts, account.to_be_bytes())?;
            Ok(amount(stored.as_deref()))
        };
        let (left, right) = (read(from)?, read(to)?);
        if from == to || left < money {
            return Ok(false);
        }
        transaction.insert(accounts, from.to_be_bytes(), (left - money).to_be_bytes())?;
        transaction.insert(accounts, to.to_be_bytes(), (right + money).to_be_bytes())?;
        Ok(true)
    })
}

/// The transfers of one thread, which are pseudo-random.
fn work(db: &Db, thread: u64) -> Result<()> {
    let accounts = db.keyspace("accounts")?;
    let counters = db.keyspace("counters")?;
    let mut state = thread + 1;
    let mut random = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        state >> 33
    };
    for _ in 0..TRANSFERS {
        let (from, to) = (random() % ACCOUNTS, random() % ACCOUNTS);
        if transfer(db, &accounts, from, to, random() % MONEY)? {
            counters.update("transfers", |old| {
                Some((amount(old) + 1).to_be_bytes().to_vec())
            })?;
        }
    }
    Ok(())
}

fn main() -> std::result::Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let db = Db::open(folder.path(), Options::default())?;
    let accounts = db.keyspace("accounts")?;
    for account in 0..ACCOUNTS {
        accounts.insert(account.to_be_bytes(), MONEY.to_be_bytes())?;
    }
    thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|thread| {
                scope.spawn({
                    let db = &db;
                    move || work(db, thread)
                })
            })
            .collect();
        threads
            .into_iter()
            .try_for_each(|thread| match thread.join() {
                Ok(outcome) => outcome,
                Err(panic) => std::panic::resume_unwind(panic),
            })
    })?;
    let mut total = 0;
    for entry in accounts.iter()? {
        total += amount(Some(&entry?.1));
    }
    let transfers = amount(db.keyspace("counters")?.get("transfers")?.as_deref());
    println!("{transfers} transfers, {total} in all accounts");
    assert_eq!(total, ACCOUNTS * MONEY);
    db.close()?;
    Ok(())
}
