//! The decision of recovery at a position of a log. Pure.
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
//! A recorded length comes from the first record of the next log, or from the manifest if an earlier
//! recovery or a clean close has ended the log. A next log may take records before the log before it is synced. So a
//! log that ends before its recorded length is damaged only if something proves that it was synced. Without
//! proof, history ends there and the next logs are void.
//!
//! "Invalid" is everything except a sound chunk of this log at this position: torn, zero or missing bytes,
//! and also sound chunks of other logs or positions, because both seed the checksums.
//!
//! Only long chunks have a synced offset ([`writer`](super::writer), I4). The decisions are the same as if
//! all chunks had one, while one long chunk of the sync in question is sound:
//! - The rows of a missing file, a read error and a recorded length do not use synced offsets.
//! - A valid chunk is applied in either form. The largest synced offset of the sound chunks up to any
//!   place is the same, because the first chunk with a larger one is long.
//! - For an invalid chunk: suppose that a chunk was written after the log was synced beyond the position.
//!   The first chunk behind that sync is long and has the synced offset. It is at or behind the synced
//!   offset, so beyond the position, where the reader searches for it. If damage destroys this chunk and
//!   every repetition, recovery takes the end for torn, until the chunk of the next sync.
//! - So a later log that was synced has a long chunk that proves the sync of all previous logs.

use std::cmp::Ordering;

/// The bytes at the position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    /// A sound chunk of this log, written for this position.
    Valid,
    /// Any other bytes, or none.
    Invalid,
    /// The bytes cannot be read.
    ReadError,
    /// The manifest names the log, but the file does not exist.
    FileMissing,
}

/// The inputs of the decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TailState {
    /// The position of recovery in the log.
    pub(crate) position: u64,
    /// The length at which the log was closed, if it is known.
    pub(crate) recorded_length: Option<u64>,
    /// The bytes at the position.
    pub(crate) next: Next,
    /// Whether something proves that the log was durable beyond the position.
    pub(crate) synced_beyond: bool,
}

/// The action of recovery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TailAction {
    /// Apply the chunk and continue behind it.
    Apply,
    /// The log is complete; continue with the next log, if it exists.
    NextLog,
    /// Recovery is complete: this log ends here, and the next logs are void.
    EndOfHistory,
    /// Durable bytes are lost or damaged.
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
