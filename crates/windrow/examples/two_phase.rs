//! One order changes two databases, the stock and the money, and never only one of them.
//!
//! Both parts are prepared first. The decision is a key of the first database, written before either part is committed.
//! After a crash at any place `recover` ends what is prepared: it commits if the decision is there, and rolls back if not.
//! The program crashes on purpose after each step, by leaving everything as it is and opening both databases again.
//!
//! `cargo run --example two_phase`

#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::path::Path;

use windrow::{Db, Durability, ErrorKind, Options, Result};

const PRICE: u64 = 3;

struct Shop {
    stock: Db,
    money: Db,
}

/// Where the program stops.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stop {
    AfterFirstPrepare,
    AfterBoth,
    AfterDecision,
    AfterFirstCommit,
    Never,
}

fn number(stored: Option<&[u8]>) -> u64 {
    let stored = stored.and_then(|bytes| bytes.try_into().ok());
    stored.map_or(0, u64::from_be_bytes)
}

/// Changes the number at `key` by `change` in a transaction that it prepares under `order`. Others wait for the key.
fn prepare(db: &Db, key: &str, order: &str, change: impl Fn(u64) -> Option<u64>) -> Result<bool> {
    let numbers = db.keyspace("numbers")?;
    let transaction = db.locking_transaction();
    let old = number(transaction.get_for_update(&numbers, key)?.as_deref());
    let Some(new) = change(old) else {
        return Ok(false);
    };
    transaction.insert(&numbers, key, new.to_be_bytes())?;
    transaction.prepare(order)?;
    Ok(true)
}

impl Shop {
    fn open(folder: &Path) -> Result<Self> {
        let open = |name: &str| Db::open(folder.join(name), Options::default());
        let shop = Self {
            stock: open("stock")?,
            money: open("money")?,
        };
        shop.recover()?;
        Ok(shop)
    }

    /// Sells an apple, up to the step `stop`.
    fn sell(&self, order: &str, stop: Stop) -> Result<()> {
        let has_stock = prepare(&self.stock, "apples", order, |old| old.checked_sub(1))?;
        if stop == Stop::AfterFirstPrepare || !has_stock {
            return Ok(());
        }
        prepare(&self.money, "coins", order, |old| Some(old + PRICE))?;
        if stop == Stop::AfterBoth {
            return Ok(());
        }
        let decisions = self.stock.keyspace("decisions")?;
        decisions.insert_with(order, "commit", Durability::Sync)?;
        if stop == Stop::AfterDecision {
            return Ok(());
        }
        self.end(&self.stock, order)?;
        if stop == Stop::AfterFirstCommit {
            return Ok(());
        }
        self.end(&self.money, order)
    }

    /// Ends a part of `order` as it was decided. It is durable before the decision could be forgotten.
    fn end(&self, db: &Db, order: &str) -> Result<()> {
        let Some(prepared) = db.prepared_transaction(order) else {
            return Ok(());
        };
        let decisions = self.stock.keyspace("decisions")?;
        if decisions.contains_key(order)? {
            prepared.commit_with(Durability::Sync)
        } else {
            prepared.roll_back_with(Durability::Sync)
        }
    }

    fn recover(&self) -> Result<()> {
        for db in [&self.stock, &self.money] {
            for order in db.prepared_transactions() {
                self.end(db, &order)?;
            }
        }
        Ok(())
    }

    fn count(&self) -> Result<(u64, u64)> {
        let apples = self.stock.keyspace("numbers")?.get("apples")?;
        let coins = self.money.keyspace("numbers")?.get("coins")?;
        Ok((number(apples.as_deref()), number(coins.as_deref())))
    }
}

fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let folder = tempfile::tempdir()?;
    let mut shop = Shop::open(folder.path())?;
    let apples = shop.stock.keyspace("numbers")?;
    apples.insert("apples", 10_u64.to_be_bytes())?;
    let stops = [
        Stop::AfterFirstPrepare,
        Stop::AfterBoth,
        Stop::AfterDecision,
        Stop::AfterFirstCommit,
        Stop::Never,
    ];
    drop(apples);
    for (position, stop) in stops.into_iter().enumerate() {
        let order = format!("order {position}");
        shop.sell(&order, stop)?;
        if stop == Stop::AfterBoth {
            // Until the end nobody else can change what was prepared.
            let stock = shop.stock.keyspace("numbers")?;
            let refused = stock.insert("apples", 99_u64.to_be_bytes());
            assert_eq!(
                refused.map_err(|error| error.kind()),
                Err(ErrorKind::Conflict)
            );
        }
        drop(shop);
        shop = Shop::open(folder.path())?;
        let (apples, coins) = shop.count()?;
        println!("{order}, stopped {stop:?}: {apples} apples, {coins} coins");
        assert_eq!(coins, (10 - apples) * PRICE);
    }
    assert_eq!(shop.count()?, (7, 9));
    Ok(())
}
