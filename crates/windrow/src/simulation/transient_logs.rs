//! Kinds of transient logs: how long they are, and how many keys one covers.
//!
//! A flush makes logs of one kind. What comes down from the levels above a part of a tree refers to those that flushes
//! made and to those that compactions made of them.

use super::key_space::Span;
use crate::policy::whole;

/// Transient log files of one kind.
#[derive(Debug, Clone, Copy, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub(super) struct TransientLogs {
    /// The fraction of all values in transient logs that they hold.
    pub(super) fraction: f64,
    /// Bytes of a file.
    pub(super) file_bytes: f64,
    /// The part of the key space that a file covers.
    pub(super) width: f64,
}

/// At most this many files of one kind are distinguished in a flush. Beyond that, each stands for several.
const DISTINGUISHED_MAX: f64 = 64.0;

/// A kind with less than this fraction of the values does not count.
const FRACTION_MIN: f64 = 0.02;

impl TransientLogs {
    /// How many of `count` files over `span` are distinguished: those that lie beside each other.
    pub(super) fn distinguished(&self, count: f64, span: Span) -> u64 {
        let beside = (span.width() / self.width).round();
        whole(beside.min(count).clamp(1.0, DISTINGUISHED_MAX))
    }

    /// How many of `count` files over `span` have a key.
    pub(super) fn layers(&self, count: f64, span: Span) -> f64 {
        (count * self.width / span.width()).max(1.0)
    }

    /// The kinds among `files`, whose fractions are numbers of values. Files are of one kind if their lengths are equal
    /// by powers of two.
    pub(super) fn kinds(files: impl Iterator<Item = Self>) -> Vec<Self> {
        let mut kinds: Vec<(u64, Self)> = Vec::new();
        for file in files {
            let length = whole(file.file_bytes.log2().round());
            let sums = Self {
                fraction: file.fraction,
                file_bytes: file.file_bytes * file.fraction,
                width: file.width * file.fraction,
            };
            match kinds.iter_mut().find(|(own, _)| *own == length) {
                Some((_, kind)) => kind.add(sums),
                None => kinds.push((length, sums)),
            }
        }
        let all: f64 = kinds.iter().map(|(_, kind)| kind.fraction).sum();
        kinds.retain(|(_, kind)| kind.fraction > FRACTION_MIN * all);
        let kept: f64 = kinds.iter().map(|(_, kind)| kind.fraction).sum();
        let mean = |(_, sums): (u64, Self)| Self {
            fraction: sums.fraction / kept,
            file_bytes: sums.file_bytes / sums.fraction,
            width: sums.width / sums.fraction,
        };
        kinds.into_iter().map(mean).collect()
    }

    fn add(&mut self, other: Self) {
        self.fraction += other.fraction;
        self.file_bytes += other.file_bytes;
        self.width += other.width;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn logs(fraction: f64, file_bytes: f64, width: f64) -> TransientLogs {
        TransientLogs {
            fraction,
            file_bytes,
            width,
        }
    }

    #[test]
    fn files_of_about_the_same_length_are_one_kind() {
        let files = [
            logs(30.0, 4.0e6, 0.25),
            logs(10.0, 4.4e6, 0.05),
            logs(59.0, 64e6, 0.5),
            logs(1.0, 1e6, 0.5),
        ];
        let kinds = TransientLogs::kinds(files.into_iter());
        let expected = [logs(40.0 / 99.0, 4.1e6, 0.2), logs(59.0 / 99.0, 64e6, 0.5)];
        assert_eq!(kinds.len(), expected.len());
        for (kind, expected) in kinds.iter().zip(expected) {
            assert!((kind.fraction - expected.fraction).abs() < 1e-9);
            assert!((kind.file_bytes - expected.file_bytes).abs() < 1e-3);
            assert!((kind.width - expected.width).abs() < 1e-9);
        }
        assert_eq!(TransientLogs::kinds(std::iter::empty()), []);
    }

    #[test]
    fn files_lie_beside_and_above_each_other() {
        let quarters = logs(1.0, 1e6, 0.25);
        for (count, beside, layers) in [(1.0, 1, 1.0), (4.0, 4, 1.0), (12.0, 4, 3.0)] {
            assert_eq!(quarters.distinguished(count, Span::ALL), beside);
            assert!((quarters.layers(count, Span::ALL) - layers).abs() < 1e-9);
        }
    }
}
