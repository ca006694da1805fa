//! Counters: threads count visits without reading, and no visit is lost.
//!
//! `cargo run --example counter`

#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::error::Error;
use std::sync::Arc;
use std::thread;

use windrow::operators::AddU64;
use windrow::{Db, Keyspace, Options};

const PAGES: u64 = 10;
const VISITS: u64 = 10_000;

/// Counts visits of pages: an increment is a write without a read.
fn visit(visits: &Keyspace, thread: u64) -> windrow::Result<()> {
    for number in 0..VISITS {
        let page = format!("page/{}", (number * 7 + thread) % PAGES);
        visits.merge(page, 1_u64.to_le_bytes())?;
    }
    Ok(())
}

fn count(visits: &Keyspace, page: &str) -> windrow::Result<u64> {
    let stored = visits.get(page)?;
    let stored = stored.and_then(|bytes| bytes.try_into().ok());
    Ok(stored.map_or(0, u64::from_le_bytes))
}

fn main() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    // The keyspace has this merge operator from its creation on.
    let options = Options::default().with_merge_operator("visits", Arc::new(AddU64::Wrapping));
    let db = Db::open(folder.path(), options)?;
    let visits = db.keyspace("visits")?;
    thread::scope(|scope| {
        let threads: Vec<_> = (0..4)
            .map(|thread| {
                let visits = &visits;
                scope.spawn(move || visit(visits, thread))
            })
            .collect();
        threads
            .into_iter()
            .try_for_each(|thread| match thread.join() {
                Ok(outcome) => outcome,
                Err(panic) => std::panic::resume_unwind(panic),
            })
    })?;

    let monday = db.snapshot();
    visits.merge("page/0", 5_u64.to_le_bytes())?;
    println!("page/0: {} visits", count(&visits, "page/0")?);
    assert_eq!(count(&visits, "page/0")?, 4 * VISITS / PAGES + 5);

    // A snapshot keeps the count of its moment, and a removal begins at zero again.
    visits.remove("page/0")?;
    visits.merge("page/0", 1_u64.to_le_bytes())?;
    assert_eq!(count(&visits, "page/0")?, 1);
    let then = visits.at(&monday)?.get("page/0")?;
    assert_eq!(then, Some((4 * VISITS / PAGES).to_le_bytes().to_vec()));
    db.close()?;

    // Ready operators are found by their recorded names.
    let db = Db::open(folder.path(), Options::default())?;
    let visits = db.keyspace("visits")?;
    for entry in visits.iter()? {
        let (page, count) = entry?;
        let count = u64::from_le_bytes(count.try_into().unwrap_or_default());
        println!("{}: {count}", page.escape_ascii());
    }
    db.close()?;
    Ok(())
}
