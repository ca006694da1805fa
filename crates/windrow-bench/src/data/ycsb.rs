//! The workloads of YCSB: the operation of each step.
//!
//! As in YCSB, records have numbers in the order of their insertion, and their keys are scrambled numbers. A
//! zipfian request picks one of 10^10 items and hashes it to a record, so hot records are neither old nor adjacent.
//! Several items fall on a record. The hottest has the fraction 1 / zeta(10^10, 0.99), 3.8 %, for every number of
//! records. The seed of the data determines the hot records, and they are the same in every workload, so one
//! workload reads the records that another has made hot. A "latest" request picks a rank and counts it back from
//! the newest record. Three things differ from YCSB. Items go to the records of the load phase, and ranks to the
//! records at the start of the load (YCSB includes those to come). Every item and rank has its exact probability.
//! The hash is another one.

use crate::DataSet;
use crate::data::random::{Rng, mix};
use crate::data::zipf::{EXPONENT, Zipf};
use crate::measure::tally::Operation;

/// The items of scrambled requests, as in YCSB.
const ITEMS: u64 = 10_000_000_000;
/// Separates the scrambling of requests from other uses of the seed.
const SCRAMBLE: u64 = 0x7963_7362;

/// The longest scan.
const SCAN_MAX: u64 = 100;

/// The operations of a workload, in percent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Workload {
    reads: u64,
    updates: u64,
    inserts: u64,
    scans: u64,
    /// Requests favor the latest inserts.
    latest: bool,
}

impl Workload {
    const NOTHING: Self = Self {
        reads: 0,
        updates: 0,
        inserts: 0,
        scans: 0,
        latest: false,
    };

    pub(crate) const A: Self = Self {
        reads: 50,
        updates: 50,
        ..Self::NOTHING
    };
    pub(crate) const B: Self = Self {
        reads: 95,
        updates: 5,
        ..Self::NOTHING
    };
    pub(crate) const C: Self = Self {
        reads: 100,
        ..Self::NOTHING
    };
    pub(crate) const D: Self = Self {
        reads: 95,
        inserts: 5,
        latest: true,
        ..Self::NOTHING
    };
    pub(crate) const E: Self = Self {
        scans: 95,
        inserts: 5,
        ..Self::NOTHING
    };
    /// The other operations read and write.
    pub(crate) const F: Self = Self {
        reads: 50,
        ..Self::NOTHING
    };

    /// Whether the workload changes the store.
    pub(crate) fn writes(self) -> bool {
        self != Self::C
    }

    /// Whether the workload inserts records.
    pub(crate) fn inserts(self) -> bool {
        self.inserts > 0
    }

    /// The maximal number of inserts among `total` steps: the mean and six roots of it, far more than chance adds.
    pub(crate) fn insertions_most(self, total: u64) -> u64 {
        if self.inserts == 0 {
            return 0;
        }
        let expected = u128::from(total) * u128::from(self.inserts) / 100;
        let expected = u64::try_from(expected).unwrap_or(u64::MAX);
        expected.saturating_add(6 * total.isqrt()).min(total)
    }

    fn pick(self, rng: &mut Rng) -> Operation {
        let mut rest = rng.below(100);
        for (fraction, operation) in [
            (self.reads, Operation::Read),
            (self.updates, Operation::Update),
            (self.inserts, Operation::Insert),
            (self.scans, Operation::Scan),
        ] {
            if rest < fraction {
                return operation;
            }
            rest -= fraction;
        }
        Operation::ReadModifyWrite
    }
}

/// One load of a workload, shared by its threads.
#[derive(Debug)]
pub(crate) struct Requests<'a> {
    data: &'a DataSet,
    workload: Workload,
    stream: u64,
    zipf: Zipf,
    /// The records of the load phase, which scrambled requests pick.
    scrambled: u64,
    scramble: u64,
    /// The numbers in the keys of the records at the start of the load, in order, if the workload scans.
    numbers: Vec<u64>,
}

impl<'a> Requests<'a> {
    /// Requests to the first `present` records, at least one.
    pub(crate) fn new(data: &'a DataSet, workload: Workload, stream: u64, present: u64) -> Self {
        let mut numbers = Vec::new();
        if workload.scans > 0 {
            numbers.extend((0..present).map(|record| data.record_number(record)));
            numbers.sort_unstable();
        }
        let ranks = if workload.latest { present } else { ITEMS };
        Self {
            data,
            workload,
            stream,
            zipf: Zipf::new(ranks, EXPONENT),
            // Inserts of other loads do not change the hot records.
            scrambled: present.min(data.num()),
            scramble: mix(data.seed() ^ SCRAMBLE),
            numbers,
        }
    }

    /// The operation of step `step`, and the generator for its details.
    #[inline]
    pub(crate) fn step(&self, step: u64) -> (Operation, Rng) {
        let mut rng = self.data.rng(self.stream, step);
        (self.workload.pick(&mut rng), rng)
    }

    /// The entries of a scan: uniform from 1 to 100.
    #[inline]
    pub(crate) fn length(rng: &mut Rng) -> u64 {
        1 + rng.below(SCAN_MAX)
    }

    /// The record of a step while `present` records exist.
    #[inline]
    pub(crate) fn record(&self, rng: &mut Rng, present: u64) -> u64 {
        let rank = self.zipf.sample(rng);
        if self.workload.latest {
            present - 1 - rank
        } else {
            self.scrambled(rank)
        }
    }

    /// The numbers that a scan from `key` must meet, in addition to inserts of the load.
    #[inline]
    pub(crate) fn from(&self, key: &[u8]) -> &[u64] {
        let number = self.data.number_of(key).unwrap_or(0);
        let place = self.numbers.partition_point(|&other| other < number);
        &self.numbers[place..]
    }

    /// The record of `item`.
    #[inline]
    fn scrambled(&self, item: u64) -> u64 {
        Rng::new(self.scramble ^ item).below(self.scrambled)
    }
}

#[cfg(test)]
mod tests {
    use std::ops::Range;

    use super::*;
    use crate::ValueSizes;

    const RECORDS: u64 = 10_000;
    const SAMPLES: u64 = 200_000;
    /// The sum of the weights of all items. YCSB has this constant, too.
    const ZETA: f64 = 26.469_028_201_783_02;

    fn data() -> DataSet {
        DataSet::new(RECORDS, 24, ValueSizes::same(100), 1).unwrap()
    }

    // The bench reserves capacity for this number.
    #[test]
    fn inserts_stay_below_their_bound() {
        let data = data();
        for workload in [Workload::C, Workload::D, Workload::E] {
            for total in [1, 10, 1000, 100_000] {
                let pick = |step: &u64| workload.pick(&mut data.rng(3, *step));
                let insertions = (0..total).filter(|step| pick(step) == Operation::Insert);
                let (count, most) = (insertions.count() as u64, workload.insertions_most(total));
                assert!(count <= most && most <= total, "{count} of {total}, {most}");
                assert_eq!(most == 0, !workload.inserts());
            }
        }
    }

    /// The requests of each record while `present` records exist.
    fn counts(workload: Workload, present: u64) -> Vec<u64> {
        counts_of(workload, 5, RECORDS, present)
    }

    /// The requests of each record by a load with its own stream that began with `before` records.
    fn counts_of(workload: Workload, stream: u64, before: u64, present: u64) -> Vec<u64> {
        let data = data();
        let requests = Requests::new(&data, workload, stream, before);
        let mut counts = vec![0; usize::try_from(present).unwrap()];
        for step in 0..SAMPLES {
            let (_, mut rng) = requests.step(step);
            counts[usize::try_from(requests.record(&mut rng, present)).unwrap()] += 1;
        }
        counts
    }

    #[test]
    fn operations_have_the_fractions_of_their_workload() {
        let data = data();
        for (workload, fractions) in [
            (Workload::A, [50, 50, 0, 0, 0]),
            (Workload::B, [95, 5, 0, 0, 0]),
            (Workload::C, [100, 0, 0, 0, 0]),
            (Workload::D, [95, 0, 5, 0, 0]),
            (Workload::E, [0, 0, 5, 95, 0]),
            (Workload::F, [50, 0, 0, 0, 50]),
        ] {
            let requests = Requests::new(&data, workload, 5, RECORDS);
            let operations = [
                Operation::Read,
                Operation::Update,
                Operation::Insert,
                Operation::Scan,
                Operation::ReadModifyWrite,
            ];
            for (operation, fraction) in operations.into_iter().zip(fractions) {
                let count = (0..SAMPLES).filter(|&step| requests.step(step).0 == operation);
                let percent = count.count() as f64 * 100.0 / SAMPLES as f64;
                assert!(
                    (percent - f64::from(fraction)).abs() < 0.5,
                    "{workload:?} {percent}"
                );
            }
        }
    }

    /// The fraction of each of `RECORDS` records: exact for the first million items, and uniform for the others,
    /// which have less than a millionth each.
    fn fractions(requests: &Requests<'_>) -> Vec<f64> {
        let mut fractions = vec![0.0; usize::try_from(RECORDS).unwrap()];
        for item in 0..1_000_000_u64 {
            let weight = ((item + 1) as f64).powf(-EXPONENT);
            fractions[usize::try_from(requests.scrambled(item)).unwrap()] += weight / ZETA;
        }
        let rest = (1.0 - fractions.iter().sum::<f64>()) / RECORDS as f64;
        assert!(rest > 0.0);
        fractions
            .into_iter()
            .map(|fraction| fraction + rest)
            .collect()
    }

    #[test]
    fn hot_records_are_scattered_and_as_hot_as_the_sums_say() {
        let counts = counts(Workload::C, RECORDS);
        let data = data();
        let fractions = fractions(&Requests::new(&data, Workload::C, 5, RECORDS));
        let mut by_heat: Vec<usize> = (0..fractions.len()).collect();
        by_heat.sort_by(|&a, &b| fractions[b].total_cmp(&fractions[a]));
        for ranks in [1, 10, 100, 1000] {
            let hottest = &by_heat[..ranks];
            let met = hottest.iter().map(|&record| counts[record]).sum::<u64>();
            let fraction = met as f64 / SAMPLES as f64;
            let expected = hottest.iter().map(|&record| fractions[record]).sum::<f64>();
            assert!(
                (fraction / expected - 1.0).abs() < 0.05,
                "{ranks}: {fraction} of {expected}"
            );
        }
        // Each tenth of the records has about ten of the hundred hottest.
        for tenth in 0..10 {
            let part = tenth * 1000..(tenth + 1) * 1000_usize;
            let hot = by_heat[..100]
                .iter()
                .filter(|record| part.contains(*record))
                .count();
            assert!((2..25).contains(&hot), "tenth {tenth} has {hot}");
        }
    }

    #[test]
    fn the_hottest_of_a_million_records_is_as_hot_as_in_ycsb() {
        let data = DataSet::new(1_000_000, 24, ValueSizes::same(100), 1).unwrap();
        let requests = Requests::new(&data, Workload::C, 5, 1_000_000);
        for (item, expected) in [(0, 1.0 / ZETA), (1, 0.5_f64.powf(EXPONENT) / ZETA)] {
            let record = requests.scrambled(item);
            let asked = (0..SAMPLES).filter(|&step| {
                let (_, mut rng) = requests.step(step);
                requests.record(&mut rng, 1_000_000) == record
            });
            let fraction = asked.count() as f64 / SAMPLES as f64;
            // Five standard deviations, and the fraction of other items.
            assert!(
                (fraction - expected).abs() < 0.0025,
                "{fraction} of {expected}"
            );
        }
    }

    #[test]
    fn every_workload_has_the_same_hot_records() {
        let hottest = |workload, stream, present| {
            let counts = counts_of(workload, stream, present, present);
            let mut by_heat: Vec<usize> = (0..counts.len()).collect();
            by_heat.sort_by_key(|&record| std::cmp::Reverse(counts[record]));
            by_heat.truncate(5);
            by_heat
        };
        let expected = hottest(Workload::A, 1, RECORDS);
        assert_eq!(hottest(Workload::C, 2, RECORDS), expected);
        assert_eq!(hottest(Workload::E, 3, RECORDS), expected);
        // Also after a load with inserts.
        assert_eq!(hottest(Workload::F, 4, RECORDS + 700), expected);
    }

    #[test]
    fn scans_have_every_length_alike() {
        let data = data();
        let requests = Requests::new(&data, Workload::E, 5, RECORDS);
        let mut counts = [0_u64; 101];
        for step in 0..SAMPLES {
            let (_, mut rng) = requests.step(step);
            let _record = requests.record(&mut rng, RECORDS);
            counts[usize::try_from(Requests::length(&mut rng)).unwrap()] += 1;
        }
        assert_eq!(counts[0], 0);
        // 2000 each; five standard deviations are 224.
        assert!(counts[1..].iter().all(|count| (1776..2224).contains(count)));
    }

    #[test]
    fn latest_favours_the_newest() {
        // 500 more than at the start.
        let counts = counts(Workload::D, RECORDS + 500);
        let newest_first: Vec<u64> = counts.into_iter().rev().collect();
        let sum = |range: Range<usize>| newest_first[range].iter().sum::<u64>();
        for (newer, older) in [
            (0..1, 1..2),
            (1..2, 3..4),
            (0..10, 10..20),
            (0..100, 100..200),
        ] {
            assert!(sum(newer.clone()) > sum(older), "{newer:?}");
        }
        let fraction = newest_first[0] as f64 / SAMPLES as f64;
        assert!((0.08..0.12).contains(&fraction), "{fraction}");
        // Ranks cover the records at the start.
        assert_eq!(sum(10_000..10_500), 0);
    }
}
