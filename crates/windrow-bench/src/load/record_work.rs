//! The inner loops of the loads of YCSB for one thread.
//!
//! Every read must find its record, in a generation that [`Records`] allows. Scans must be in order, meet every
//! record from before the load, and end only after the last of them.

use windrow::Result;

use crate::data::ycsb::Requests;
use crate::load::errors::{foreign, lost, passed, wrong};
use crate::load::records::Records;
use crate::measure::stopwatch::{Lane, Stopwatch};
use crate::measure::tally::{Operation, Tally};
use crate::{DataSet, Engine, Scan};

/// One thread of a load on YCSB's records.
#[derive(Debug)]
pub(crate) struct RecordWorker<'a, E> {
    pub(crate) engine: &'a E,
    pub(crate) data: &'a DataSet,
    pub(crate) records: &'a Records,
}

impl<E: Engine> RecordWorker<'_, E> {
    /// Inserts the records with the numbers of the steps.
    pub(crate) fn load(&self, lane: &Lane<'_>) -> Result<Tally> {
        let (mut key, mut value) = (Vec::new(), Vec::new());
        let mut watch = Stopwatch::new(lane);
        for record in lane.steps.clone() {
            if !watch.continues(1) {
                break;
            }
            self.insert(record, &mut key, &mut value, &mut watch.tally)?;
            watch.done(Operation::Insert, 1)?;
        }
        Ok(watch.tally)
    }

    /// Runs the part `lane` of `requests`.
    pub(crate) fn run(&self, requests: &Requests<'_>, lane: &Lane<'_>) -> Result<Tally> {
        let (mut key, mut value) = (Vec::new(), Vec::new());
        let mut watch = Stopwatch::new(lane);
        for step in lane.steps.clone() {
            if !watch.continues(1) {
                break;
            }
            let tally = &mut watch.tally;
            let (operation, mut rng) = requests.step(step);
            match operation {
                Operation::Insert => {
                    let record = self.records.take_next();
                    self.insert(record, &mut key, &mut value, tally)?;
                }
                Operation::Scan => {
                    let record = requests.record(&mut rng, self.records.present());
                    let length = Requests::length(&mut rng);
                    self.data.record_key(record, &mut key);
                    self.scan(&key, length, requests.from(&key), tally)?;
                }
                _ => {
                    let record = requests.record(&mut rng, self.records.present());
                    self.data.record_key(record, &mut key);
                    if operation != Operation::Update {
                        self.read(record, &key, &mut value, tally)?;
                    }
                    if operation != Operation::Read {
                        self.update(record, &key, &mut value, tally)?;
                    }
                }
            }
            watch.done(operation, 1)?;
        }
        Ok(watch.tally)
    }

    fn insert(
        &self,
        record: u64,
        key: &mut Vec<u8>,
        value: &mut Vec<u8>,
        tally: &mut Tally,
    ) -> Result<()> {
        self.data.record_key(record, key);
        self.write(record, key, value, tally)?;
        tally.added_bytes += (key.len() + value.len()) as u64;
        Ok(())
    }

    /// Writes an existing record. Of several concurrent writes, the last one to begin counts as the final one.
    fn update(
        &self,
        record: u64,
        key: &[u8],
        value: &mut Vec<u8>,
        tally: &mut Tally,
    ) -> Result<()> {
        let generation = self.write(record, key, value, tally)?;
        tally.added_bytes += value.len() as u64;
        let before = generation.wrapping_sub(1);
        tally.garbage_bytes += self.data.value_size(key, before) as u64;
        Ok(())
    }

    /// Writes a record and returns its generation.
    fn write(
        &self,
        record: u64,
        key: &[u8],
        value: &mut Vec<u8>,
        tally: &mut Tally,
    ) -> Result<u16> {
        let generation = self.records.begin(record);
        self.data.value(key, generation, value);
        self.engine.put(key, value)?;
        self.records.end(record);
        tally.user_bytes += (key.len() + value.len()) as u64;
        Ok(generation)
    }

    fn read(&self, record: u64, key: &[u8], value: &mut Vec<u8>, tally: &mut Tally) -> Result<()> {
        let oldest = self.records.oldest(record);
        if !self.engine.get(key, value)? {
            return Err(lost(key));
        }
        let checked = self.data.check(key, value)?;
        self.records.check(record, oldest, checked.generation)?;
        tally.returned(key, value, checked.fingerprint);
        tally.found += 1;
        Ok(())
    }

    /// Scans `length` entries from `key`. No workload updates records concurrently with its scans, so the current
    /// state of a record is also that at the open of the scan. `ahead` has the numbers of the records from `key`
    /// that existed before the load; the scan must skip none of them.
    fn scan(&self, key: &[u8], length: u64, ahead: &[u64], tally: &mut Tally) -> Result<()> {
        let mut ahead = ahead.iter().copied();
        let mut awaited = ahead.next();
        let mut before = None;
        let mut scan = self.engine.scan()?;
        let mut valid = scan.seek(key)?;
        if !valid || scan.key() != key {
            return Err(lost(key));
        }
        for left in (0..length).rev() {
            let number = self.data.number_of(scan.key());
            let number = number.ok_or_else(|| foreign(scan.key()))?;
            if before.is_some_and(|before| number <= before) {
                return Err(wrong(scan.key(), "is out of order"));
            }
            before = Some(number);
            match awaited {
                Some(next) if number > next => return Err(passed(next)),
                Some(next) if number == next => awaited = ahead.next(),
                // An insert of the load.
                _ => {}
            }
            let record = self.data.record_of(scan.key());
            let record = record.filter(|&record| self.records.is_taken(record));
            let record = record.ok_or_else(|| foreign(scan.key()))?;
            let value = scan.value()?;
            let checked = self.data.check(scan.key(), value)?;
            self.records
                .check(record, self.records.oldest(record), checked.generation)?;
            tally.returned(scan.key(), value, checked.fingerprint);
            if left > 0 {
                valid = scan.next()?;
            }
            if !valid {
                // A scan ends only after the last record.
                if let Some(next) = awaited {
                    return Err(passed(next));
                }
                break;
            }
        }
        tally.found += 1;
        Ok(())
    }

    /// Finds the records in the store of another run.
    pub(crate) fn find(engine: &E, data: &DataSet) -> Result<(Records, u64)> {
        let mut found = Vec::new();
        let mut live_bytes = 0;
        let mut scan = engine.scan()?;
        let mut valid = scan.seek(&[0])?;
        while valid {
            let (key, value) = (scan.key(), scan.value()?);
            let record = data.record_of(key).ok_or_else(|| foreign(key))?;
            found.push((record, data.check(key, value)?.generation));
            live_bytes += (key.len() + value.len()) as u64;
            valid = scan.next()?;
        }
        Ok((Records::found(&found)?, live_bytes))
    }
}
