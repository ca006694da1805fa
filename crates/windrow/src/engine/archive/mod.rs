//! The archive of a database: what a store of backups gets of its changes, and the way back.
//!
//! - [`archiver`]: writes the changes behind the place of a consumer to the store.
//! - [`binding`]: says which changes a backup has seen.
//! - [`restore`]: applies changes to a database that was restored from a backup.
//!
//! The consumer holds the changes until they are durable in the store, and its name has the random number of the history:
//! `archive`, a space, and 32 hexadecimal digits. A copy of the database has no consumers, so it has no history either. A
//! consumer falls behind if history was cut, or if it holds too much.
//!
//! Concurrency: that of backups.

mod archiver;
mod binding;
mod restore;

pub(crate) use restore::restore_to;

use crate::base::SequenceNumber;
use crate::manifest::ChangeState;

/// The name of the consumer of an archive begins so.
const CONSUMER: &str = "archive ";

/// The consumer of the archive.
#[derive(Debug, Clone, Copy)]
struct Archive {
    history: u128,
    /// The store has every change up to here.
    place: SequenceNumber,
}

impl Archive {
    /// The name of the consumer of `history`.
    fn consumer(history: u128) -> String {
        format!("{CONSUMER}{history:032x}")
    }

    /// The archive that has not fallen behind, if there is one.
    fn find(changes: &ChangeState) -> Option<Self> {
        let mut consumers = changes.consumers.iter();
        consumers.find_map(|(name, consumer)| {
            let history = history_of(name)?;
            let place = consumer.acknowledged;
            (!consumer.is_behind).then_some(Self { history, place })
        })
    }
}

/// The history that the consumer `name` belongs to.
fn history_of(name: &str) -> Option<u128> {
    let digits = name.strip_prefix(CONSUMER)?;
    let history = u128::from_str_radix(digits, 16).ok()?;
    (Archive::consumer(history) == name).then_some(history)
}
