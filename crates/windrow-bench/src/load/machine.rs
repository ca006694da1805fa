//! The loads of `db_bench` that measure the machine instead of the store: hashes and compression of blocks.

use std::hint::black_box;

use lz4_flex::block::{compress_into, decompress_into, get_maximum_output_size};
use windrow::{Error, Result};
use xxhash_rust::xxh3::xxh3_64;
use xxhash_rust::xxh32::xxh32;
use xxhash_rust::xxh64::xxh64;

use crate::DataSet;
use crate::load::kinds::Machine;
use crate::measure::stopwatch::Lane;
use crate::measure::tally::{Operation, Tally};

/// Bytes of a block.
const BLOCK_BYTES: usize = 4 << 10;

/// Runs the part `lane` of a load on blocks.
pub(crate) fn run(machine: Machine, data: &DataSet, lane: &Lane<'_>) -> Result<Tally> {
    let block = data.block(BLOCK_BYTES);
    match machine {
        Machine::Hash32 => hash(lane, || u64::from(xxh32(black_box(block), 0))),
        Machine::Hash64 => hash(lane, || xxh64(black_box(block), 0)),
        Machine::Hash3 => hash(lane, || xxh3_64(black_box(block))),
        Machine::Compress => {
            let mut compressed = vec![0; get_maximum_output_size(block.len())];
            lane.each(Operation::Compress, |_, tally| {
                let bytes = compress_into(black_box(block), &mut compressed).map_err(refused)?;
                tally.found += u64::from(bytes < block.len());
                Ok(())
            })
        }
        Machine::Decompress => {
            let mut compressed = vec![0; get_maximum_output_size(block.len())];
            let bytes = compress_into(block, &mut compressed).map_err(refused)?;
            let mut restored = vec![0; block.len()];
            lane.each(Operation::Decompress, |_, tally| {
                decompress_into(black_box(&compressed[..bytes]), &mut restored).map_err(refused)?;
                if restored != block {
                    return Err(refused("a decompressed block differs from its original"));
                }
                tally.found += 1;
                Ok(())
            })
        }
    }
}

fn hash(lane: &Lane<'_>, hash: impl Fn() -> u64) -> Result<Tally> {
    lane.each(Operation::Hash, |_, tally| {
        tally.checksum = tally.checksum.wrapping_add(hash());
        Ok(())
    })
}

fn refused(error: impl std::fmt::Display) -> Error {
    Error::corruption("LZ4", 0, error.to_string())
}
