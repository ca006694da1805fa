//! The key space, and the entries of segments as expectations.
//!
//! Keys fall into classes of about the same popularity. The keys of a class lie evenly over the key space, and a
//! segment's entries count as lying evenly over its range. Of a class with D keys in a range, a segment knows
//! how many *inserts* it has, each of another key, and how many *draws*, each of any of the D keys. Both add
//! up when segments are merged, and determine the number of different keys: y draws hit
//! `D (1 - exp(-y/D))` keys, inserted or not. So superseded entries need no state of their own, and the
//! expectation is exact for any order of merges.

use std::ops::AddAssign;

use super::mass::{Mass, Written, covered};
use super::references::References;

/// The smallest and the largest key of something, inclusive; keys are parts of the key space in units of 2^-64.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) smallest: u64,
    pub(super) largest: u64,
}

impl Span {
    /// All keys except the last, which stands for none.
    pub(super) const ALL: Self = Self {
        smallest: 0,
        largest: u64::MAX - 1,
    };

    /// Its part of the key space.
    pub(super) fn width(self) -> f64 {
        ((self.largest - self.smallest) as f64 + 1.0) * 0.5_f64.powi(64)
    }

    /// The keys that are in both.
    pub(super) fn common(self, other: Self) -> Option<Self> {
        let smallest = self.smallest.max(other.smallest);
        let largest = self.largest.min(other.largest);
        (smallest <= largest).then_some(Self { smallest, largest })
    }
}

/// Which part of the keys that are in both `one` and `other` is in `span`, too.
pub(super) fn part_of(span: Span, one: Span, other: Span) -> f64 {
    let common = one.common(other);
    let own = common.and_then(|common| common.common(span));
    match (own, common) {
        (Some(own), Some(common)) => own.width() / common.width(),
        _ => 0.0,
    }
}

/// Keys that are drawn about as often.
#[derive(Debug, Clone, Copy)]
pub(super) struct KeyClass {
    /// The number of keys of the class.
    pub(super) keys: f64,
    /// The part of all draws that they get.
    pub(super) drawn: f64,
}

/// All keys.
#[derive(Debug, Clone)]
pub(super) struct KeySpace {
    pub(super) classes: Box<[KeyClass]>,
    pub(super) keys: f64,
    /// The part of the keys that a range delete covers.
    pub(super) range_part: f64,
}

/// Numbers of entries.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Count {
    pub(super) entries: f64,
    pub(super) tombstones: f64,
    pub(super) operands: f64,
    /// Those of the entries that delete a range.
    pub(super) range_tombstones: f64,
    /// Values that expire.
    pub(super) expiring: f64,
    /// Those whose values are in transient logs.
    pub(super) in_transient_logs: f64,
}

impl AddAssign for Count {
    fn add_assign(&mut self, other: Self) {
        self.entries += other.entries;
        self.tombstones += other.tombstones;
        self.operands += other.operands;
        self.range_tombstones += other.range_tombstones;
        self.expiring += other.expiring;
        self.in_transient_logs += other.in_transient_logs;
    }
}

impl Count {
    /// Those that have a value.
    pub(super) fn values(self) -> f64 {
        self.entries - self.tombstones - self.operands - self.range_tombstones
    }

    pub(super) fn part(self, part: f64) -> Self {
        Self {
            entries: self.entries * part,
            tombstones: self.tombstones * part,
            operands: self.operands * part,
            range_tombstones: self.range_tombstones * part,
            expiring: self.expiring * part,
            in_transient_logs: self.in_transient_logs * part,
        }
    }
}

/// A segment: its range, its mass of each class, its range deletes, and its references to value files.
#[derive(Debug, Clone)]
pub(super) struct Segment {
    pub(super) span: Span,
    pub(super) masses: Box<[Mass]>,
    /// How many range deletes of the whole key space it has, on average over its keys. Each has a range tombstone where it
    /// meets the range of the segment.
    pub(super) range_deletes: f64,
    pub(super) count: Count,
    pub(super) references: References,
}

impl KeySpace {
    pub(super) fn new(classes: Vec<KeyClass>, range_part: f64) -> Self {
        let keys = classes.iter().map(|class| class.keys).sum();
        Self {
            classes: classes.into(),
            keys,
            range_part,
        }
    }

    /// The segment of these writes over `span`.
    pub(super) fn written(&self, span: Span, written: &Written) -> Segment {
        let width = span.width();
        let mass = |class: &KeyClass| {
            let inserts = written.inserts * class.keys / self.keys;
            let draws = written.draws * class.drawn;
            Mass::written(inserts, draws, class.keys * width, written)
        };
        let masses: Box<[Mass]> = self.classes.iter().map(mass).collect();
        let mut segment = Segment {
            span,
            count: self.count(&masses, width),
            masses,
            range_deletes: written.range_deletes,
            references: References::default(),
        };
        self.count_range_tombstones(&mut segment);
        segment
    }

    /// Counts the range tombstones of a segment among its entries. They cover its ends or lie between them.
    pub(super) fn count_range_tombstones(&self, segment: &mut Segment) {
        let met = (segment.span.width() + self.range_part).min(1.0);
        let count = &mut segment.count;
        count.range_tombstones = segment.range_deletes * met;
        count.entries += count.range_tombstones;
    }

    /// The part of the keys that the range tombstones of so many range deletes cover.
    pub(super) fn covered(&self, range_deletes: f64) -> f64 {
        covered(range_deletes, self.range_part)
    }

    /// The chance that one of so many range deletes covers all of `span`.
    pub(super) fn covers_all(&self, span: Span, range_deletes: f64) -> f64 {
        let width = span.width();
        if self.range_part >= 1.0 {
            return self.covered(range_deletes);
        }
        let places = (self.range_part - width).max(0.0) / (1.0 - width).max(f64::MIN_POSITIVE);
        covered(range_deletes, places)
    }

    /// The entries of each class in a segment that have a value.
    pub(super) fn values(&self, segment: &Segment) -> Vec<f64> {
        let width = segment.span.width();
        let classes = self.classes.iter().zip(&segment.masses);
        let values = classes.map(|(class, mass)| {
            mass.entries(class.keys * width) - mass.tombstones - mass.operands
        });
        values.map(|values| values.max(0.0)).collect()
    }

    /// The entries of `masses` over a part of the key space.
    pub(super) fn count(&self, masses: &[Mass], width: f64) -> Count {
        let mut count = Count::default();
        for (class, mass) in self.classes.iter().zip(masses) {
            count.entries += mass.entries(class.keys * width);
            count.tombstones += mass.tombstones;
            count.operands += mass.operands;
            count.expiring += mass.lifetimes.entries;
        }
        count
    }
}
