//! An engine that holds every key and allocates nothing, to see that the loops around an engine
//! allocate nothing either.

use allocation_counter::measure;
use windrow::Result;

use crate::gauge::Gauge;
use crate::pace::Rate;
use crate::stopwatch::Lane;
use crate::work::Worker;
use crate::{
    Answer, BenchArgs, Counters, DataSet, Engine, Entry, LevelShape, Load, MixgraphArgs, Mixture,
    Scan, ValueSizes,
};

const NUM: u64 = 10_000;

/// An engine that makes the values that are asked for.
struct Echo(DataSet);

/// A position, and room for what is there.
struct EchoScan<'a> {
    data: &'a DataSet,
    index: u64,
    key: Vec<u8>,
    value: Vec<u8>,
}

impl EchoScan<'_> {
    fn land(&mut self) -> bool {
        self.data.key(self.index, &mut self.key);
        self.data.value(&self.key, 0, &mut self.value);
        self.index < NUM
    }
}

impl Scan for EchoScan<'_> {
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

impl Engine for Echo {
    const NAME: &'static str = "echo";
    type Scan<'a> = EchoScan<'a>;

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

    fn multi_get(&self, keys: &[Vec<u8>], answers: &mut [Answer]) -> Result<()> {
        for (key, answer) in keys.iter().zip(answers) {
            answer.is_found = self.get(key, &mut answer.value)?;
        }
        Ok(())
    }

    fn scan(&self) -> Result<EchoScan<'_>> {
        Ok(EchoScan {
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

    fn levels(&self) -> Result<Vec<LevelShape>> {
        Ok(Vec::new())
    }

    fn close(self) -> Result<()> {
        Ok(())
    }
}

#[test]
fn loops_allocate_nothing_per_operation() {
    let data = || DataSet::new(NUM, 16, ValueSizes::same(100), 1).unwrap();
    let engine = Echo(data());
    let data = data();
    let gauges = Gauge::of(1);
    // Its scans allocate, so it does without them here.
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
    ] {
        let args = BenchArgs {
            batch_size: 7,
            ..BenchArgs::new(vec![load])
        };
        let worker = Worker {
            engine: &engine,
            data: &data,
            args: &args,
            load,
            live: None,
            stream: 5,
            generation: 0,
            indexes: load.indexes(NUM),
            numbers: NUM,
            sizes_are_known: !load.writes_other_sizes(),
            mixture: Some(&mixture),
        };
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
