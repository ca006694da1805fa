//! The costs of operations under given options, in microseconds of the processor, background work included, and
//! of the device.
//!
//! A [`Shape`] is a tree as a simulation predicts it. The [`Costs`] follow from it and a [`Demand`]. Filter bits
//! are no part of the shape, since compactions do not depend on them.
//!
//! - A *write* costs a constant, each byte to the log and to value logs, and each entry, each pointer into a value
//!   log and each byte that flushes, compactions and garbage collections move for it.
//! - A *get* costs a constant, each filter that is probed, each block that is read, and the value if it is
//!   separated from its key. Bits are allocated to filters as in the engine, after Monkey.
//!   If operands wait above the value of a key, it reads a block for each.
//! - A *range delete* costs what every write costs alone; what it makes jobs do counts with the other writes.
//! - A *scan* costs a constant, each run that is opened, each entry for each run, and each separated value.
//! - *Requests* to the device: a get waits for its blocks one after the other. A scan asks for the first block of each
//!   run at once, and then for longer pieces, each twice the last.
//! - *Memory* beside memtables, filters and indexes caches what is read most often for its size. Everything else
//!   is read from the device.
//!
//! I1. More runs, more bytes moved and less memory never make anything cheaper.

mod cpu;
mod demand;
mod device;
mod equilibrium;
mod filters;
mod memory;
mod shape;

use serde::Serialize;
use windrow::KeyspaceOptions;

pub(crate) use self::demand::{Demand, Fractions, OtherWrites};
#[cfg(test)]
pub(crate) use self::device::Device;
pub(crate) use self::device::{DeviceCost, MachineArgs};
use self::filters::Filters;
use self::memory::{Misses, PAGE_BYTES};
#[cfg(test)]
pub(crate) use self::shape::Level;
pub(crate) use self::shape::Shape;

/// Bytes of an index entry of a block, its part of a key included.
const INDEX_BYTES: f64 = 24.0;

/// What operations cost, in microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(crate) struct Costs {
    /// Of the average write, get and scan.
    pub(crate) write: f64,
    pub(crate) get: f64,
    pub(crate) missing: f64,
    pub(crate) scan: f64,
    /// Of the average operation that reads.
    pub(crate) reads: f64,
    /// Of the average operation of all.
    pub(crate) operation: f64,
    /// Blocks that a get of an absent key reads because of false positives.
    pub(crate) false_positive_reads: f64,
    pub(crate) runs_per_seek: f64,
    pub(crate) filter_bytes: f64,
    /// Requests to the device of the average get that finds its key, and of the average scan before its first entry;
    /// and the bytes of these requests.
    pub(crate) get_requests: f64,
    pub(crate) get_request_bytes: f64,
    pub(crate) scan_requests: f64,
    pub(crate) scan_request_bytes: f64,
    /// The same of a get of an absent key, and of the separated value of an entry of a scan.
    pub(crate) missing_requests: f64,
    pub(crate) missing_request_bytes: f64,
    pub(crate) value_requests: f64,
    pub(crate) value_request_bytes: f64,
    /// Bytes of memtables, filters and indexes.
    pub(crate) memory_bytes: f64,
    /// The fraction of the reads of blocks and values that memory answers.
    pub(crate) hit_fraction: f64,
}

impl Costs {
    /// The costs of `demand` in a tree of this `shape` under `options`.
    pub(crate) fn new(shape: &Shape, demand: &Demand, options: &KeyspaceOptions) -> Self {
        let filters = Filters::new(shape, options);
        let false_positives = filters.false_positives();
        let filter_bytes = shape.entries() * options.bits_per_key / 8.0;
        let blocks = shape.table_bytes() / options.block_bytes as f64;
        let memtables = 2.0 * options.memtable_bytes as f64;
        let memory_bytes = memtables + filter_bytes + blocks * INDEX_BYTES;
        let misses = Misses::new(shape, demand, &filters, memory_bytes);
        let device = &demand.device;
        let passed = shape.table_bytes() / shape.entries().max(1.0);
        let block = passed.max(options.block_bytes as f64);
        let wait = |blocks: f64| blocks * (device.random_read + block * device.byte_read);
        let wait_for_values =
            misses.values * device.random_read + misses.value_bytes * device.byte_read;

        let write = cpu::WRITE
            + shape.moved.cpu(options.bits_per_key)
            + shape.moved.entries * shape.value_logs.fraction * cpu::POINTER_MOVED
            + shape.moved.written() * device.byte_written
            + shape.moved.read() * misses.tables * device.byte_read;

        let (value_logs, transient_logs) = (shape.value_logs, shape.transient_logs);
        let follow = value_logs.fraction * cpu::VALUE_LOG_VALUE
            + transient_logs.fraction * cpu::TRANSIENT_LOG_VALUE;
        let operands_read = shape.operands_per_key * misses.tables;
        let get = cpu::GET
            + cpu::FOUND
            + filters.consulted_if_found * cpu::RUN_CONSULTED
            + (1.0 + false_positives.found + shape.operands_per_key) * cpu::BLOCK_SEARCHED
            + follow
            + demand.value_bytes() * cpu::BYTE_RETURNED
            + wait(misses.found + operands_read)
            + wait_for_values;
        let runs = shape.runs_per_seek();
        let missing = cpu::GET
            + runs * cpu::RUN_CONSULTED
            + false_positives.missing * cpu::BLOCK_SEARCHED
            + wait(misses.false_positives);

        let returned = value_logs.fraction * value_logs.value_bytes
            + transient_logs.fraction * transient_logs.value_bytes;
        let step = cpu::STEP
            + (runs - 1.0).max(0.0) * cpu::STEP_PER_RUN
            + passed * cpu::BYTE_SCANNED
            + follow
            + returned * cpu::BYTE_RETURNED
            + wait_for_values;
        let blocks_passed = demand.scan_length * passed / block;
        let scan = cpu::SCAN
            + runs * cpu::RUN_OPENED
            + demand.scan_length * step
            + device.at_once(misses.opened, block)
            + device.one_after_another(blocks_passed, block, misses.tables);

        // The device reads whole pages.
        let value_request_bytes = misses.value_bytes.max(misses.values * PAGE_BYTES);
        let fractions = demand.fractions;
        let reading = fractions.gets * get + fractions.missing * missing + fractions.scans * scan;
        let reads = match fractions.reads() {
            0.0 => 0.0,
            all => reading / all,
        };
        Self {
            write,
            get,
            missing,
            scan,
            reads,
            operation: fractions.writes() * write + fractions.range_deletes * cpu::WRITE + reading,
            false_positive_reads: false_positives.missing,
            runs_per_seek: runs,
            get_requests: misses.found + operands_read + misses.values,
            get_request_bytes: (misses.found + operands_read) * block + value_request_bytes,
            scan_requests: misses.opened,
            scan_request_bytes: misses.opened * block,
            missing_requests: misses.false_positives,
            missing_request_bytes: misses.false_positives * block,
            value_requests: misses.values,
            value_request_bytes,
            filter_bytes,
            memory_bytes,
            hit_fraction: misses.hit_fraction,
        }
    }
}

#[cfg(test)]
mod tests;
