//! How much a consumer of changes may hold on disk, and how long. Pure.
//!
//! A consumer that holds nothing never falls behind, however long it is silent. Silence before it holds anything does not
//! count: it may have had nothing to acknowledge.

use std::time::Duration;

use crate::base::SequenceNumber;
use crate::options::Retention;

/// A consumer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ConsumerPlace {
    /// It has done with every change up to here.
    pub(crate) acknowledged: SequenceNumber,
    /// How long ago it said so.
    pub(crate) silent: Duration,
}

/// Bytes on disk that nothing but consumers needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct HeldBytes {
    /// The newest change in them.
    pub(crate) last: SequenceNumber,
    pub(crate) bytes: u64,
    /// For how long nothing else has needed them; zero if that is not known.
    pub(crate) kept: Duration,
}

/// Whether `consumer` falls behind because it holds too much of `held`, or for too long.
pub(crate) fn falls_behind(
    consumer: ConsumerPlace,
    held: &[HeldBytes],
    retention: Retention,
) -> bool {
    let own = held.iter().filter(|it| it.last > consumer.acknowledged);
    let kept = own.clone().map(|it| it.kept).max().unwrap_or_default();
    let bytes = own.fold(0, |sum: u64, it| sum.saturating_add(it.bytes));
    bytes > retention.bytes || kept.min(consumer.silent) > retention.idle
}

#[cfg(test)]
mod tests {
    use super::{ConsumerPlace, HeldBytes, falls_behind};
    use crate::options::Retention;
    use std::time::Duration;

    #[test]
    fn a_consumer_falls_behind_by_its_own_bytes_and_by_silence() {
        let held = [(10, 100, 90), (20, 50, 80), (30, 7, 61)];
        let held = held.map(|(last, bytes, kept)| HeldBytes {
            last,
            bytes,
            kept: Duration::from_secs(kept),
        });
        let retention = Retention {
            bytes: 150,
            idle: Duration::from_secs(60),
        };
        // The acknowledged sequence number, the seconds of silence, and whether it falls behind.
        for (acknowledged, silent, expected) in [
            (0, 0, true),
            (9, 0, true),
            (10, 0, false),
            (10, 60, false),
            (10, 61, true),
            (19, 60, false),
            (29, 61, true),
            (30, 0, false),
            (30, 61, false),
            (99, u64::MAX, false),
        ] {
            let consumer = ConsumerPlace {
                acknowledged,
                silent: Duration::from_secs(silent),
            };
            let found = falls_behind(consumer, &held, retention);
            assert_eq!(found, expected, "{acknowledged} {silent}");
            assert!(!falls_behind(consumer, &[], retention));
        }
    }

    #[test]
    fn silence_counts_from_when_a_consumer_holds_anything() {
        let retention = Retention {
            bytes: 1000,
            idle: Duration::from_secs(60),
        };
        for (silent, kept, expected) in [
            (1000, [0, 0], false),
            (1000, [60, 0], false),
            (1000, [0, 61], true),
            (61, [1000, 1000], true),
            (60, [1000, 1000], false),
        ] {
            let held = kept.map(|kept| HeldBytes {
                last: 10,
                bytes: 1,
                kept: Duration::from_secs(kept),
            });
            let consumer = ConsumerPlace {
                acknowledged: 5,
                silent: Duration::from_secs(silent),
            };
            let found = falls_behind(consumer, &held, retention);
            assert_eq!(found, expected, "{silent} {kept:?}");
        }
    }

    #[test]
    fn the_bound_is_allowed_and_huge_sums_are_not() {
        let place = ConsumerPlace {
            acknowledged: 0,
            silent: Duration::ZERO,
        };
        for (bytes, bound, expected) in [
            (5, 10, false),
            (5, 9, true),
            (u64::MAX, u64::MAX, false),
            (u64::MAX, u64::MAX - 1, true),
            (0, 0, false),
        ] {
            let held = [HeldBytes {
                last: 1,
                bytes,
                kept: Duration::ZERO,
            }; 2];
            let retention = Retention {
                bytes: bound,
                idle: Duration::MAX,
            };
            assert_eq!(falls_behind(place, &held, retention), expected, "{bytes}");
        }
    }
}
