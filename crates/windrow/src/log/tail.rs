//! What recovery does at a position of a log, as one pure decision.
//!
//! | log at the position | next bytes | synced beyond | action |
//! |---|---|---|---|
//! | file named by the manifest | missing | any | corruption |
//! | any | read error | any | I/O error |
//! | past its recorded length | any other | any | corruption |
//! | at its recorded length | any other | any | next log |
//! | before its recorded length, or none recorded | valid chunk | any | apply |
//! | before its recorded length, or none recorded | invalid | yes | corruption |
//! | before its recorded length, or none recorded | invalid | no | end of history |
//!
//! A log that has a successor has a recorded length, in the successor's first record; a log that an
//! earlier recovery has ended has one in the manifest. A successor may take records before its
//! predecessor is synced, so a predecessor that ends early is damaged only where something proves
//! that it was synced; without proof, history ends there and its successors do not count.
//!
//! "Invalid" is everything but a sound chunk that was written for this log and this position: torn,
//! zero or missing bytes, and sound chunks of other logs or other positions too, since checksums are
//! seeded with both.
//!
//! Only long chunks speak of syncs ([`writer`](super::writer), I4). As long as one of those that speak of
//! the sync in question is sound, nothing is decided otherwise than if all did:
//! - The rows of a missing file, a read error and a recorded length do not ask what chunks say.
//! - A valid chunk is applied in either form. What the sound chunks up to any place say of syncs at
//!   most is the same, since the first chunk that could say more is long.
//! - Behind an invalid one, suppose that a chunk was written when the log was known to be synced
//!   beyond the position. The first chunk behind that sync is long and says so. It stands at or
//!   behind what was synced, so beyond the position, where it is looked for. Where damage takes it
//!   away as well, and every repetition, the end is taken for torn until the next sync is spoken of.
//! - So a later log that was synced at all has a long chunk that speaks of it, and proves as much of
//!   its predecessors.

use std::cmp::Ordering;

/// What stands at the position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    /// A sound chunk of this log, written for this position.
    Valid,
    /// Anything else, or nothing.
    Invalid,
    /// The bytes cannot be read.
    ReadError,
    /// The log is named by the manifest, but there is no such file.
    FileMissing,
}

/// All that the decision depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TailState {
    /// Where in the log recovery stands.
    pub(crate) position: u64,
    /// The length at which the log was closed, if it is known.
    pub(crate) recorded_length: Option<u64>,
    /// What stands at the position.
    pub(crate) next: Next,
    /// Whether anything proves that the log was once durable beyond the position.
    pub(crate) synced_beyond: bool,
}

/// What to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TailAction {
    /// Apply the chunk and go on behind it.
    Apply,
    /// This log is complete: go on with its successor, if it has one.
    NextLog,
    /// All that counts has been read: this log ends here, and its successors are void.
    EndOfHistory,
    /// Bytes that were durable are lost or damaged.
    Corruption,
    /// Report the read error; it proves nothing about the bytes.
    Io,
}

/// Decides by the table above.
pub(crate) fn decide(state: TailState) -> TailAction {
    let recorded = state
        .recorded_length
        .map(|length| state.position.cmp(&length));
    match (state.next, recorded) {
        (Next::ReadError, _) => TailAction::Io,
        (Next::FileMissing, _) | (_, Some(Ordering::Greater)) => TailAction::Corruption,
        (_, Some(Ordering::Equal)) => TailAction::NextLog,
        (Next::Valid, _) => TailAction::Apply,
        (Next::Invalid, _) if state.synced_beyond => TailAction::Corruption,
        (Next::Invalid, _) => TailAction::EndOfHistory,
    }
}

#[cfg(test)]
mod tests {
    use super::{Next, TailAction, TailState, decide};

    /// The position seen from the recorded length.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    enum Place {
        Active,
        Before,
        At,
        Past,
    }

    /// One row of the table: the inputs it covers, and its action.
    struct Rule {
        places: &'static [Place],
        nexts: &'static [Next],
        synced_beyond: &'static [bool],
        action: TailAction,
    }

    const ANY_PLACE: &[Place] = &[Place::Active, Place::Before, Place::At, Place::Past];
    const OPEN: &[Place] = &[Place::Active, Place::Before];
    const READABLE: &[Next] = &[Next::Valid, Next::Invalid];
    const EITHER: &[bool] = &[false, true];

    const RULES: [Rule; 7] = [
        Rule {
            places: ANY_PLACE,
            nexts: &[Next::FileMissing],
            synced_beyond: EITHER,
            action: TailAction::Corruption,
        },
        Rule {
            places: ANY_PLACE,
            nexts: &[Next::ReadError],
            synced_beyond: EITHER,
            action: TailAction::Io,
        },
        Rule {
            places: &[Place::Past],
            nexts: READABLE,
            synced_beyond: EITHER,
            action: TailAction::Corruption,
        },
        Rule {
            places: &[Place::At],
            nexts: READABLE,
            synced_beyond: EITHER,
            action: TailAction::NextLog,
        },
        Rule {
            places: OPEN,
            nexts: &[Next::Valid],
            synced_beyond: EITHER,
            action: TailAction::Apply,
        },
        Rule {
            places: OPEN,
            nexts: &[Next::Invalid],
            synced_beyond: &[true],
            action: TailAction::Corruption,
        },
        Rule {
            places: OPEN,
            nexts: &[Next::Invalid],
            synced_beyond: &[false],
            action: TailAction::EndOfHistory,
        },
    ];

    #[test]
    fn every_input_matches_exactly_one_rule() {
        let position = 1000;
        for &place in ANY_PLACE {
            for next in [
                Next::Valid,
                Next::Invalid,
                Next::ReadError,
                Next::FileMissing,
            ] {
                for synced_beyond in [false, true] {
                    let recorded_length = match place {
                        Place::Active => None,
                        Place::Before => Some(position + 1),
                        Place::At => Some(position),
                        Place::Past => Some(position - 1),
                    };
                    let state = TailState {
                        position,
                        recorded_length,
                        next,
                        synced_beyond,
                    };
                    let matching: Vec<_> = RULES
                        .iter()
                        .filter(|rule| {
                            rule.places.contains(&place)
                                && rule.nexts.contains(&next)
                                && rule.synced_beyond.contains(&synced_beyond)
                        })
                        .collect();
                    assert_eq!(matching.len(), 1, "{state:?}");
                    assert_eq!(decide(state), matching[0].action, "{state:?}");
                }
            }
        }
    }
}
