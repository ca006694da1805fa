//! replay: the operations of a trace file, one after the other.
//!
//! A value follows from its key and its size. The replay checks every value that it reads. It remembers the last
//! write or delete of some million keys, and a get of such a key must return this state.

use windrow::Result;
use xxhash_rust::xxh3::xxh3_64;

use crate::data::trace::{Trace, TraceOp};
use crate::load::errors::wrong;
use crate::load::kinds::Direction;
use crate::load::read_work::InOrder;
use crate::measure::stopwatch::{Lane, Stopwatch};
use crate::measure::tally::{Operation, Tally};
use crate::{DataSet, Engine, Scan};

/// The number of remembered keys; a power of two.
const REMEMBERED: usize = 1 << 20;
/// Values with fewer bytes do not hold the whole generation.
const GENERATION_BYTES_MIN: usize = 2;

/// The last write of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Last {
    Written { size: usize, generation: u16 },
    Deleted,
}

/// The last writes of some keys, by hash. A key may replace another.
#[derive(Debug)]
struct Memory(Vec<Option<(u64, Last)>>);

impl Memory {
    fn new() -> Self {
        Self(vec![None; REMEMBERED])
    }

    #[expect(
        clippy::cast_possible_truncation,
        reason = "only the low bits are kept"
    )]
    fn slot(&mut self, key: &[u8]) -> (u64, &mut Option<(u64, Last)>) {
        let hash = xxh3_64(key);
        (hash, &mut self.0[hash as usize & (REMEMBERED - 1)])
    }

    fn note(&mut self, key: &[u8], last: Last) {
        let (hash, slot) = self.slot(key);
        *slot = Some((hash, last));
    }

    /// The last write of `key`, if it is remembered.
    fn last(&mut self, key: &[u8]) -> Option<Last> {
        match self.slot(key) {
            (hash, Some((of, last))) if *of == hash => Some(*last),
            _ => None,
        }
    }
}

/// Replays `trace` on `engine`, one operation for each step of `lane`.
pub(crate) fn run(
    engine: &impl Engine,
    data: &DataSet,
    trace: &mut Trace,
    lane: &Lane<'_>,
) -> Result<Tally> {
    let mut memory = Memory::new();
    let mut order = InOrder::default();
    let mut value = Vec::new();
    let mut generation = 0_u16;
    let mut watch = Stopwatch::new(lane);
    for _ in lane.steps.clone() {
        let Some((asked, key)) = trace.next()? else {
            break;
        };
        watch.begin_anew();
        if !watch.continues(1) {
            break;
        }
        let tally = &mut watch.tally;
        let kind = match asked {
            TraceOp::Get => {
                let is_found = engine.get(key, &mut value)?;
                check(
                    data,
                    key,
                    is_found.then_some(&value),
                    memory.last(key),
                    tally,
                )?;
                Operation::Read
            }
            TraceOp::Put(size) => {
                generation = generation.wrapping_add(1);
                data.value_of_size(key, generation, size, &mut value);
                tally.user_bytes += (key.len() + size) as u64;
                engine.put(key, &value)?;
                memory.note(key, Last::Written { size, generation });
                Operation::Write
            }
            TraceOp::Delete => {
                tally.user_bytes += key.len() as u64;
                engine.delete(key)?;
                memory.note(key, Last::Deleted);
                Operation::Delete
            }
            TraceOp::Scan(length) => {
                scan(engine, data, key, length, &mut order, tally)?;
                Operation::Scan
            }
        };
        watch.done(kind, 1)?;
    }
    Ok(watch.tally)
}

/// Checks the result of a get against the last write of its key.
fn check(
    data: &DataSet,
    key: &[u8],
    found: Option<&Vec<u8>>,
    last: Option<Last>,
    tally: &mut Tally,
) -> Result<()> {
    let Some(value) = found else {
        return match last {
            Some(Last::Written { .. }) => Err(wrong(key, "is not found")),
            Some(Last::Deleted) | None => Ok(()),
        };
    };
    let checked = data.check_bytes(key, value)?;
    tally.returned(key, value, checked.fingerprint);
    tally.found += 1;
    match last {
        None => Ok(()),
        Some(Last::Deleted) => Err(wrong(key, "is found but was deleted")),
        Some(Last::Written { size, generation }) => {
            let is_last = size < GENERATION_BYTES_MIN || checked.generation == generation;
            if value.len() == size && is_last {
                Ok(())
            } else {
                Err(wrong(key, "does not have its last written value"))
            }
        }
    }
}

fn scan(
    engine: &impl Engine,
    data: &DataSet,
    key: &[u8],
    length: u64,
    order: &mut InOrder,
    tally: &mut Tally,
) -> Result<()> {
    let mut scan = engine.scan()?;
    let mut valid = scan.seek(key)?;
    if valid {
        if scan.key() < key {
            return Err(wrong(scan.key(), "is before the sought key"));
        }
        order.begin(scan.key());
        tally.found += 1;
    }
    for _ in 0..length {
        if !valid {
            break;
        }
        let value = scan.value()?;
        let checked = data.check_bytes(scan.key(), value)?;
        tally.returned(scan.key(), value, checked.fingerprint);
        valid = scan.next()?;
        if valid {
            order.step(scan.key(), Direction::Forward)?;
        }
    }
    Ok(())
}
