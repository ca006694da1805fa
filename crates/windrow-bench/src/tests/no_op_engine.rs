//! A no-op engine, which holds every key and allocates no memory. With it, the tests see that the loops around an
//! engine allocate none, either.

use std::sync::atomic::{AtomicU64, Ordering};

use allocation_counter::measure;
use windrow::Result;

use crate::load::work::Worker;
use crate::measure::gauge::Gauge;
use crate::measure::rate_limiter::Rate;
use crate::measure::stopwatch::Lane;
use crate::{
    BenchArgs, Counters, DataSet, Engine, Entry, Load, MixgraphArgs, Mixture, Scan, ValueSizes,
};

const NUM: u64 = 10_000;

/// An engine that makes the requested values and counts its scans.
struct NoOp(DataSet, AtomicU64);

/// A position, with buffers for its key and value.
struct NoOpScan<'a> {
    data: &'a DataSet,
    index: u64,
    key: Vec<u8>,
    value: Vec<u8>,
}

impl NoOpScan<'_> {
    fn land(&mut self) -> bool {
        self.data.key(self.index, &mut self.key);
        self.data.value(&self.key, 0, &mut self.value);
        self.index < NUM
    }
}

impl Scan for NoOpScan<'_> {
    fn seek(&mut self, key: &[u8]) -> Result<bool> {
        let digits = key.iter().take_while(|byte| byte.is_ascii_digit());
        self.index = digits.fold(0, |sum, digit| sum * 10 + u64::from(digit - b'0'));
        Ok(self.land())
    }

    fn next(&mut self) -> Result<bool> {
        self.index += 1;
        Ok(self.land())
    }

    fn prev(&mut self) -> Result<bool> {
        self.index = self.index.wrapping_sub(1);
        Ok(self.land())
    }

    fn seek_to_last(&mut self) -> Result<bool> {
        self.index = NUM - 1;
        Ok(self.land())
    }

    fn key(&self) -> &[u8] {
        &self.key
    }

    fn value(&self) -> Result<&[u8]> {
        Ok(&self.value)
    }
}

impl Engine for NoOp {
    const NAME: &'static str = "no-op";
    type Scan<'a> = NoOpScan<'a>;

    fn put(&self, _key: &[u8], _value: &[u8]) -> Result<()> {
        Ok(())
    }

    fn put_synced(&self, _key: &[u8], _value: &[u8]) -> Result<()> {
        Ok(())
    }

    fn put_batch(&self, _entries: &[Entry]) -> Result<()> {
        Ok(())
    }

    fn delete(&self, _key: &[u8]) -> Result<()> {
        Ok(())
    }

    fn get(&self, key: &[u8], value: &mut Vec<u8>) -> Result<bool> {
        self.0.value(key, 0, value);
        Ok(key.last() != Some(&b'.'))
    }

    fn scan(&self) -> Result<NoOpScan<'_>> {
        self.1.fetch_add(1, Ordering::Relaxed);
        Ok(NoOpScan {
            data: &self.0,
            index: 0,
            key: Vec::new(),
            value: Vec::new(),
        })
    }

    fn settle(&self) -> Result<()> {
        Ok(())
    }

    fn counters(&self) -> Result<Counters> {
        Ok(Counters::default())
    }

    fn close(self) -> Result<()> {
        Ok(())
    }
}

/// A worker of `load` without known contents.
fn worker<'a>(
    engine: &'a NoOp,
    data: &'a DataSet,
    args: &'a BenchArgs,
    load: Load,
    mixture: Option<&'a Mixture>,
) -> Worker<'a, NoOp> {
    Worker {
        engine,
        data,
        args,
        load,
        live: None,
        stream: 5,
        generation: 0,
        indexes: load.indexes(NUM),
        numbers: NUM,
        sizes_are_known: !load.writes_other_sizes(),
        mixture,
    }
}

#[test]
fn each_seek_opens_a_scan_unless_one_is_kept() {
    let data = || DataSet::new(NUM, 16, ValueSizes::same(100), 1).unwrap();
    let engine = NoOp(data(), AtomicU64::new(0));
    let data = data();
    let gauges = Gauge::of(1);
    for load in [
        Load::SeekRandom,
        Load::Seek10,
        Load::Seek100,
        Load::FwdRange,
        Load::RevRange,
        Load::SeekRandomWhileWriting,
    ] {
        for keep_cursor in [false, true] {
            let args = BenchArgs {
                keep_cursor,
                ..BenchArgs::new(vec![load])
            };
            let lane = Lane {
                steps: 0..50,
                deadline: None,
                rate: Rate::Free,
                gauge: &gauges[0],
            };
            let before = engine.1.load(Ordering::Relaxed);
            worker(&engine, &data, &args, load, None)
                .run(&lane, 50)
                .unwrap();
            let opened = engine.1.load(Ordering::Relaxed) - before;
            let is_kept = keep_cursor && load != Load::SeekRandomWhileWriting;
            assert_eq!(opened, if is_kept { 1 } else { 50 }, "{}", load.name());
        }
    }
}

#[test]
fn loops_allocate_nothing_per_operation() {
    let data = || DataSet::new(NUM, 16, ValueSizes::same(100), 1).unwrap();
    let engine = NoOp(data(), AtomicU64::new(0));
    let data = data();
    let gauges = Gauge::of(1);
    // Its scans allocate, so the test leaves them out.
    let mixture = MixgraphArgs {
        mix_seek_ratio: Some(0.0),
        ..MixgraphArgs::default()
    };
    let mixture = Mixture::new(&mixture, NUM, 1).unwrap();
    for load in [
        Load::FillSeq,
        Load::FillBatch,
        Load::FillRandom,
        Load::FillUniqueRandom,
        Load::FillSync,
        Load::Fill100K,
        Load::UpdateRandom,
        Load::AppendRandom,
        Load::DeleteSeq,
        Load::DeleteRandom,
        Load::ReadSeq,
        Load::ReadReverse,
        Load::ReadRandom,
        Load::ReadMissing,
        Load::ReadHot,
        Load::MultiReadRandom,
        Load::SeekRandom,
        Load::Seek10,
        Load::RevRange,
        Load::ReadRandomWriteRandom,
        Load::MixGraph,
        Load::FillCounters,
        Load::ReadCounters,
        Load::PutCounters,
        Load::ReadPutCounters,
        Load::Pairs,
    ] {
        let args = BenchArgs {
            batch_size: 7,
            // A scan for each seek allocates nothing, either.
            keep_cursor: true,
            ..BenchArgs::new(vec![load])
        };
        let worker = worker(&engine, &data, &args, load, Some(&mixture));
        let allocations = |steps: u64| {
            let lane = Lane {
                steps: 0..steps,
                deadline: None,
                rate: Rate::Free,
                gauge: &gauges[0],
            };
            let mut done = 0;
            let allocated = measure(|| done = worker.run(&lane, steps).unwrap().ops);
            assert_eq!(done, steps, "{}", load.name());
            allocated.count_total
        };
        // A buffer for large values may grow once or twice more.
        let (few, many) = (allocations(2000), allocations(8000));
        assert!(many <= few + 4, "{}: {few} {many}", load.name());
    }
}
