//! The cut of history at damage of the write-ahead log ([`Recovery::UpToDamage`](crate::Recovery)).
//!
//! What counts then is a prefix of the commit order, as after a crash. Commits that the logs have lost may be in tables,
//! because each keyspace flushes on its own. So there is such a prefix only if no table holds a commit behind it.
//!
//! Consumers of changes may have seen commits that are lost, and their sequence numbers are used again. So these consumers
//! fall behind.
//!
//! Pure.

use super::replay::{Replayed, ReplayedLog};
use crate::base::{Result, SequenceNumber};
use crate::manifest::{KeyspaceState, ManifestState};

/// The last sequence number of what is left if the replay has found damage: everything behind it is cut off.
///
/// # Errors
/// That damage, if tables hold commits behind it.
pub(super) fn place_of_cut(
    state: &ManifestState,
    replayed: &Replayed,
) -> Result<Option<SequenceNumber>> {
    let Some(damage) = &replayed.damage else {
        return Ok(None);
    };
    let end = end_of_prefix(state, &replayed.logs);
    end.map(Some).ok_or_else(|| {
        damage.duplicate().context(
            "the commits before the damage cannot be had alone, because tables hold later ones",
        )
    })
}

/// The last sequence number of the prefix of history that `logs` and all tables make together. `None` if tables hold
/// commits behind it.
fn end_of_prefix(state: &ManifestState, logs: &[ReplayedLog]) -> Option<SequenceNumber> {
    let replayed = logs.last().map_or(0, |log| log.last_sequence);
    let flushed = || state.keyspaces.values().map(|keyspace| keyspace.flushed);
    // Each table has what its keyspace has flushed. If the logs begin behind damage, they may not reach that far.
    let end = replayed.max(flushed().min().unwrap_or(0));
    let newest_entry = state.keyspaces.values().filter_map(newest_entry).max();
    if newest_entry.is_some_and(|newest| newest > end) {
        return None;
    }
    // New commits follow the entries of logs that stay, so nothing else may have used later numbers.
    let used = flushed().max().unwrap_or(0).max(state.used_sequence);
    let logs_stay = logs.iter().any(|log| log.is_needed);
    (!logs_stay || used <= replayed).then_some(end)
}

/// The largest sequence number in the tables of `keyspace`.
fn newest_entry(keyspace: &KeyspaceState) -> Option<SequenceNumber> {
    let files = keyspace.levels.iter().flat_map(|level| level.values());
    files.map(|file| file.sequence_max()).max()
}
