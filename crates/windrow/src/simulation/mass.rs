//! The entries of a class of keys, as expectations.
//!
//! Of the keys of a mass, some have a *tombstone*, and some are *absent*: a merge has dropped their tombstone, or what a
//! range tombstone covers. Some have an *operand*: all writes of the key in the mass are merges, and no range tombstone
//! covers it. A mass has one entry for each key, since merges fold the operands of a key into one, or into the value that
//! they are put over.
//!
//! Each range delete covers the same part of the keys at a random place. What it covers is independent of what is drawn.

use std::ops::AddAssign;

use super::lifetimes::Lifetimes;

/// What is written to a memtable.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Written {
    pub(super) inserts: f64,
    pub(super) draws: f64,
    /// The part of the draws that delete their key, and the part that merge an operand into it.
    pub(super) deletes: f64,
    pub(super) merges: f64,
    /// Range deletes, evenly among the writes, and the part of the keys that each covers.
    pub(super) range_deletes: f64,
    pub(super) range_part: f64,
    /// The part of the values that expire, and when: from the first time to the last.
    pub(super) expiring: f64,
    pub(super) expiry: (f64, f64),
}

impl Written {
    /// All writes but range deletes.
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

    /// Which part of the keys is there at the end, if `draws` of each key are expected: the last that happened to it is a
    /// draw.
    fn drawn_last(&self, draws: f64) -> f64 {
        let drawn = |draws: f64| -(-draws).exp_m1();
        let ranges = self.range_deletes;
        if ranges <= 0.0 {
            return drawn(draws);
        }
        // Half of the draws between two range deletes come before the first one and after the last one.
        let (between, half) = (drawn(draws / ranges), drawn(draws / ranges / 2.0));
        let survives = 1.0 - self.range_part;
        let untouched = (-draws / ranges).exp() * survives;
        let earliest = if ranges > 1.0 {
            untouched.powf(ranges - 1.0)
        } else {
            1.0
        };
        let sum = (1.0 - earliest) / (1.0 - untouched).max(f64::MIN_POSITIVE);
        half + (1.0 - half) * survives * (between * sum + earliest * half)
    }

    /// Which part of the keys is there at the end, if each is inserted once.
    fn inserts_left(&self) -> f64 {
        // With so few draws nearly all of them are the only ones of their key.
        const FEW: f64 = 1e-9;
        if self.range_deletes <= 0.0 {
            return 1.0;
        }
        (self.drawn_last(FEW) / FEW).min(1.0)
    }
}

/// The part of the keys that so many range deletes cover, each this part.
pub(super) fn covered(range_deletes: f64, range_part: f64) -> f64 {
    if range_deletes <= 0.0 {
        return 0.0;
    }
    1.0 - (1.0 - range_part).powf(range_deletes)
}

/// The entries of a class in a segment, or in a part of one.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Mass {
    pub(super) inserts: f64,
    pub(super) draws: f64,
    pub(super) tombstones: f64,
    pub(super) absent: f64,
    pub(super) operands: f64,
    /// Its values that expire.
    pub(super) lifetimes: Lifetimes,
}

impl Mass {
    /// The mass of `inserts` and `draws` over `keys` keys, which are the part of the class in `written`.
    pub(super) fn written(inserts: f64, draws: f64, keys: f64, written: &Written) -> Self {
        let rate = draws / keys;
        let (hit, last) = (keys * -(-rate).exp_m1(), keys * written.drawn_last(rate));
        let inserted = inserts * written.inserts_left();
        // A key of which all draws are merges: none is anything else, and there is one.
        let merged = (-rate * (1.0 - written.merges)).exp() - (-rate).exp();
        let uncovered = 1.0 - covered(written.range_deletes, written.range_part);
        let values = inserted + last * (1.0 - written.deletes - written.merges);
        let (first_expiry, last_expiry) = written.expiry;
        Self {
            inserts,
            draws,
            tombstones: last * written.deletes,
            absent: inserts - inserted + hit - last,
            operands: if written.merges > 0.0 {
                keys * merged * uncovered
            } else {
                0.0
            },
            lifetimes: Lifetimes::even(values * written.expiring, first_expiry, last_expiry),
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
            lifetimes: self.lifetimes.times(part),
        }
    }

    /// The part of the entries below it that is left, over `keys` keys. Its range tombstones cover the part `covered` of
    /// them.
    pub(super) fn kept(&self, keys: f64, covered: f64) -> f64 {
        (-self.draws / keys).exp() * (1.0 - covered)
    }

    /// Puts `older` below it, over `keys` keys. Its own range tombstones cover the part `covered` of the keys, and those of
    /// `older` the part `covered_below`.
    pub(super) fn put_over(&mut self, older: Self, keys: f64, covered: f64, covered_below: f64) {
        if self.operands > 0.0 {
            // What is no operand is the base of one above it, and so is a range tombstone.
            let (operands, entries) = (older.operands / keys, older.entries(keys) / keys);
            let nothing = (1.0 - entries).max(0.0) * (1.0 - covered_below);
            self.operands *= (operands + nothing).min(1.0);
        }
        let is_changed = older.tombstones + older.absent + older.operands > 0.0
            || older.lifetimes.entries > 0.0
            || covered > 0.0;
        if is_changed {
            let untouched = (-self.draws / keys).exp();
            let kept = untouched * (1.0 - covered);
            self.tombstones += older.tombstones * kept;
            self.absent += untouched * (older.absent + covered * older.entries(keys));
            self.operands += older.operands * kept;
            self.lifetimes = self.lifetimes.and(older.lifetimes.times(kept));
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

    /// What has expired at `now` becomes tombstones.
    pub(super) fn expire(&mut self, now: f64) {
        if self.lifetimes.entries > 0.0 {
            self.tombstones += self.lifetimes.expire(now);
        }
    }

    /// Nothing is below it, over `keys` keys: its tombstones go, and its operands become values. What is left is as if it had
    /// been inserted, so that cells of which different parts are left add up exactly.
    pub(super) fn end_below(&mut self, keys: f64) {
        *self = Self {
            inserts: self.entries(keys) - self.tombstones,
            lifetimes: self.lifetimes,
            ..Self::default()
        };
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
        self.lifetimes = self.lifetimes.and(beside.lifetimes);
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
            sum.put_over(drawn(500.0, deletes, merges), KEYS, 0.0, 0.0);
            sum.put_over(drawn(100.0, deletes, merges), KEYS, 0.0, 0.0);
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
            mass.put_over(base(deletes), KEYS, 0.0, 0.0);
            assert_near(mass.operands, 0.0);
            let untouched = KEYS * (-0.7_f64).exp();
            assert_near(mass.tombstones, deletes * untouched);
        }
        let mut mass = drawn(700.0, 0.0, 1.0);
        let before = mass.operands;
        mass.put_over(Mass::default(), KEYS, 0.0, 0.0);
        assert_near(mass.operands, before);
        mass.put_over(drawn(300.0, 0.0, 1.0), KEYS, 0.0, 0.0);
        assert_near(mass.operands, mass.entries(KEYS));
        mass.end_below(KEYS);
        assert_near(mass.operands, 0.0);
        assert_near(mass.entries(KEYS), KEYS * -(-1.0_f64).exp_m1());
    }

    fn with_ranges(draws: f64, range_deletes: f64, range_part: f64) -> (Mass, f64) {
        let written = Written {
            range_deletes,
            range_part,
            ..Written::default()
        };
        let mass = Mass::written(0.0, draws, KEYS, &written);
        (mass, covered(range_deletes, range_part))
    }

    /// With many small range deletes, the last that happened to a key is a draw at the rate of draws.
    #[test]
    fn range_deletes_among_draws_leave_the_later_ones() {
        let (mass, _) = with_ranges(900.0, 5000.0, 1e-4);
        let (draws, ranges) = (0.9, 0.5);
        let all: f64 = draws + ranges;
        let left = draws / all * -(-all).exp_m1();
        assert!((mass.entries(KEYS) / KEYS / left - 1.0).abs() < 1e-3);
        // One of everything leaves those of the second half.
        let (mass, covered) = with_ranges(900.0, 1.0, 1.0);
        assert_near(mass.entries(KEYS), KEYS * -(-0.45_f64).exp_m1());
        assert_near(covered, 1.0);
        let inserts = Written {
            range_deletes: 2.0,
            range_part: 0.5,
            ..Written::default()
        };
        let mass = Mass::written(100.0, 0.0, KEYS, &inserts);
        let left = 0.25 + 0.5 * 0.5 + 0.25 * 0.25;
        assert!((mass.entries(KEYS) / 100.0 / left - 1.0).abs() < 1e-6);
    }

    /// A cell of which nearly everything was drawn and deleted, beside one that is inserted.
    #[test]
    fn cells_without_anything_below_add_up() {
        let (mut left, mut right) = (
            drawn(5000.0, 0.99, 0.0),
            Mass::written(300.0, 0.0, KEYS, &Written::default()),
        );
        left.end_below(KEYS);
        right.end_below(KEYS);
        let each = left.entries(KEYS) + right.entries(KEYS);
        left += right;
        assert_near(left.entries(2.0 * KEYS), each);
    }

    /// Range tombstones cover what is below them, and not what is drawn later.
    #[test]
    fn range_tombstones_cover_what_is_below() {
        let mut older = drawn(2000.0, 0.2, 0.0);
        let entries = older.entries(KEYS);
        let (mut newer, covered) = with_ranges(0.0, 2.0, 0.5);
        assert_near(covered, 0.75);
        newer.put_over(older, KEYS, covered, 0.0);
        assert_near(newer.entries(KEYS), entries / 4.0);
        assert_near(newer.tombstones, older.tombstones / 4.0);
        let mut revived = drawn(1e6, 0.0, 0.0);
        revived.put_over(newer, KEYS, 0.0, covered);
        assert_near(revived.entries(KEYS), KEYS);
        // An operand over a range tombstone is a value.
        older = with_ranges(0.0, 1.0, 0.5).0;
        let mut operands = drawn(700.0, 0.0, 1.0);
        let before = operands.operands;
        operands.put_over(older, KEYS, 0.0, 0.5);
        assert_near(operands.operands, before / 2.0);
    }

    #[test]
    fn expired_entries_become_tombstones() {
        let written = Written {
            expiring: 0.5,
            expiry: (1000.0, 1100.0),
            ..Written::default()
        };
        let mut mass = Mass::written(200.0, 0.0, KEYS, &written);
        mass.expire(1050.0);
        assert_near(mass.tombstones, 50.0);
        assert_near(mass.entries(KEYS), 200.0);
        let mut newer = drawn(1e6, 0.0, 0.0);
        newer.put_over(mass, KEYS, 0.0, 0.0);
        assert_near(newer.lifetimes.entries, 0.0);
        mass.expire(2000.0);
        mass.end_below(KEYS);
        assert_near(mass.entries(KEYS), 100.0);
    }
}
