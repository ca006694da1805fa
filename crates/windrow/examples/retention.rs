//! Retention by what a value says: a compaction filter removes the events of customers who have left, and shortens those
//! whose details nobody may keep any longer.
//!
//! `cargo run --example retention`

#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use windrow::{Candidate, CompactionFilter, Db, Decision, FilterError, Options};

/// Details are kept for this many days.
const DETAILS_KEPT_DAYS: u32 = 30;

/// An event is `day customer details`.
fn parse(event: &[u8]) -> Option<(u32, &str, &str)> {
    let mut parts = std::str::from_utf8(event).ok()?.splitn(3, ' ');
    Some((parts.next()?.parse().ok()?, parts.next()?, parts.next()?))
}

/// What may be kept of an event. It depends on the event, and on what never changes back: a customer who has left does not
/// return, and days only pass.
struct Retention {
    left: Vec<String>,
    today: AtomicU32,
}

impl CompactionFilter for Retention {
    fn name(&self) -> &'static str {
        "example.retention"
    }

    fn decide(&self, candidate: &Candidate<'_>) -> Result<Decision, FilterError> {
        let event = candidate.value()?;
        // An event that fails stays, and `Stats::judged_failed` counts it.
        let (day, customer, _) = parse(event).ok_or_else(|| FilterError::new("malformed"))?;
        if self.left.iter().any(|left| left == customer) {
            return Ok(Decision::Remove);
        }
        if day + DETAILS_KEPT_DAYS < self.today.load(Ordering::Relaxed) {
            // The same as before if there are no details any more: nothing is written then.
            return Ok(Decision::Replace(format!("{day} {customer} -").into()));
        }
        Ok(Decision::Keep)
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let retention = Arc::new(Retention {
        left: vec!["mallory".to_owned()],
        today: AtomicU32::new(100),
    });
    let filter: Arc<dyn CompactionFilter> = Arc::<Retention>::clone(&retention);
    let options = Options::default().with_compaction_filter("events", filter);
    let db = Db::open(folder.path(), options)?;
    let events = db.keyspace("events")?;
    for number in 0..30_000_u32 {
        let customer = ["alice", "bob", "mallory"][number as usize % 3];
        let event = format!("{} {customer} did this and that", 50 + number / 600);
        events.insert(number.to_be_bytes(), event)?;
    }
    // Compactions in the background come across most events in time. This one asks about all of them now.
    events.compact_range::<&[u8]>(..)?;
    let stats = db.stats();
    println!(
        "{} events were judged, {} removed, {} shortened",
        stats.entries_judged, stats.judged_removed, stats.judged_replaced
    );
    assert_eq!(events.count::<&[u8]>(..)?, 20_000);
    let first = events.get(0_u32.to_be_bytes())?;
    assert_eq!(first.as_deref(), Some(&b"50 alice -"[..]));
    // A month later, nothing has details any more.
    retention.today.store(131, Ordering::Relaxed);
    events.compact_range::<&[u8]>(..)?;
    for event in events.iter()? {
        assert_eq!(parse(&event?.1).map(|event| event.2), Some("-"));
    }
    Ok(())
}
