//! The entries of a class of keys, as expectations.
//!
//! Of the keys of a mass, some have a *tombstone*, and some are *absent*: a merge has dropped their tombstone. Some have an
//! *operand*: all writes of the key in the mass are merges. A mass has one entry for each key, since merges fold the
//! operands of a key into one, or into the value that they are put over.

use std::ops::AddAssign;

/// What is written to a memtable.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Written {
    pub(super) inserts: f64,
    pub(super) draws: f64,
    /// The part of the draws that delete their key, and the part that merge an operand into it.
    pub(super) deletes: f64,
    pub(super) merges: f64,
}

impl Written {
    /// All writes.
    pub(super) fn writes(&self) -> f64 {
        self.inserts + self.draws
    }

    /// Those that give a value.
    pub(super) fn values(&self) -> f64 {
        self.inserts + self.draws * (1.0 - self.deletes - self.merges)
    }

    /// Those that give an operand.
    pub(super) fn operands(&self) -> f64 {
        self.draws * self.merges
    }
}

/// The entries of a class in a segment, or in a part of one.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Mass {
    pub(super) inserts: f64,
    pub(super) draws: f64,
    pub(super) tombstones: f64,
    pub(super) absent: f64,
    pub(super) operands: f64,
}

impl Mass {
    /// The mass of `inserts` and `draws` over `keys` keys, which are the part of the class in `written`.
    pub(super) fn written(inserts: f64, draws: f64, keys: f64, written: &Written) -> Self {
        let hit = keys * -(-draws / keys).exp_m1();
        // A key of which all draws are merges: none is anything else, and there is one.
        let untouched = (-draws / keys).exp();
        let operands = keys * ((-draws * (1.0 - written.merges) / keys).exp() - untouched);
        Self {
            inserts,
            draws,
            tombstones: hit * written.deletes,
            absent: 0.0,
            operands: if written.merges > 0.0 { operands } else { 0.0 },
        }
    }

    /// The part of it that lies in a part of its range.
    pub(super) fn part(self, part: f64) -> Self {
        Self {
            inserts: self.inserts * part,
            draws: self.draws * part,
            tombstones: self.tombstones * part,
            absent: self.absent * part,
            operands: self.operands * part,
        }
    }

    /// Puts `older` below it, over `keys` keys.
    pub(super) fn put_over(&mut self, older: Self, keys: f64) {
        if self.operands > 0.0 {
            // What is no operand is the base of one above it.
            let bases = (older.entries(keys) - older.operands) / keys;
            self.operands *= (1.0 - bases).clamp(0.0, 1.0);
        }
        if older.tombstones + older.absent + older.operands > 0.0 {
            let untouched = (-self.draws / keys).exp();
            self.tombstones += older.tombstones * untouched;
            self.absent += older.absent * untouched;
            self.operands += older.operands * untouched;
        }
        self.inserts += older.inserts;
        self.draws += older.draws;
    }

    /// The entries that it has, tombstones and operands included, over `keys` keys.
    pub(super) fn entries(self, keys: f64) -> f64 {
        if self.draws <= 0.0 {
            return self.inserts - self.absent;
        }
        let hit = -(-self.draws / keys).exp_m1();
        self.inserts + (keys - self.inserts).max(0.0) * hit - self.absent
    }

    /// Nothing is below it: its tombstones go, and its operands become values.
    pub(super) fn end_below(&mut self) {
        self.absent += std::mem::take(&mut self.tombstones);
        self.operands = 0.0;
    }
}

impl AddAssign for Mass {
    /// Adds a range beside this one.
    fn add_assign(&mut self, beside: Self) {
        self.inserts += beside.inserts;
        self.draws += beside.draws;
        self.tombstones += beside.tombstones;
        self.absent += beside.absent;
        self.operands += beside.operands;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEYS: f64 = 1000.0;

    fn drawn(draws: f64, deletes: f64, merges: f64) -> Mass {
        let written = Written {
            deletes,
            merges,
            ..Written::default()
        };
        Mass::written(0.0, draws, KEYS, &written)
    }

    fn assert_near(one: f64, other: f64) {
        assert!((one - other).abs() < 1e-6, "{one} and {other}");
    }

    /// In whichever parts draws come, a merge of all of them has the same entries of each kind.
    #[test]
    fn flushes_of_merges_and_deletes_add_up() {
        for (deletes, merges) in [(0.0, 1.0), (0.0, 0.6), (0.2, 0.5), (0.3, 0.0)] {
            let all = drawn(900.0, deletes, merges);
            let mut sum = drawn(300.0, deletes, merges);
            sum.put_over(drawn(500.0, deletes, merges), KEYS);
            sum.put_over(drawn(100.0, deletes, merges), KEYS);
            assert_near(sum.entries(KEYS), all.entries(KEYS));
            assert_near(sum.tombstones, all.tombstones);
            assert_near(sum.operands, all.operands);
        }
    }

    /// An operand above a value or a tombstone is a value, and one above an operand or nothing stays one.
    #[test]
    fn operands_are_folded_with_their_bases() {
        let base = |deletes| drawn(1e6, deletes, 0.0);
        for deletes in [0.0, 1.0] {
            let mut mass = drawn(700.0, 0.0, 1.0);
            mass.put_over(base(deletes), KEYS);
            assert_near(mass.operands, 0.0);
            let untouched = KEYS * (-0.7_f64).exp();
            assert_near(mass.tombstones, deletes * untouched);
        }
        let mut mass = drawn(700.0, 0.0, 1.0);
        let before = mass.operands;
        mass.put_over(Mass::default(), KEYS);
        assert_near(mass.operands, before);
        mass.put_over(drawn(300.0, 0.0, 1.0), KEYS);
        assert_near(mass.operands, mass.entries(KEYS));
        mass.end_below();
        assert_near(mass.operands, 0.0);
        assert_near(mass.entries(KEYS), KEYS * -(-1.0_f64).exp_m1());
    }
}
