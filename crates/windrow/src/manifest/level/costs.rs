//! What compactions of the files of a chunk cost, computed when a plan first asks and kept until an edit changes the
//! chunk or what lies below it.
//!
//! Concurrency: shared freely; threads that ask at one time wait for the first.

use std::sync::OnceLock;

use super::{Chunk, Level};
use crate::base::sync::Shared;
use crate::manifest::handle::FileHandle;
use crate::table::cost_per_byte;

/// The costs of the files of a chunk.
#[derive(Debug, Default)]
pub(super) struct Costs(OnceLock<ChunkCosts>);

/// The costs of the files of a chunk.
#[derive(Debug)]
pub(crate) struct ChunkCosts {
    /// Of each file: its [cost](cost_per_byte).
    pub(crate) files: Box<[f64]>,
    /// The least of these.
    pub(crate) least: f64,
}

impl Level {
    /// The costs of the files of `chunk`, whose level is above `below`.
    pub(crate) fn costs(&self, chunk: usize, below: &Self) -> &ChunkCosts {
        self.costs[chunk]
            .0
            .get_or_init(|| ChunkCosts::of(&self.chunks[chunk], below))
    }
}

impl ChunkCosts {
    fn of(chunk: &Chunk, below: &Level) -> Self {
        let cost = |(position, file): (usize, &Shared<FileHandle>)| {
            let overlap = below.overlapping(file.smallest(), file.largest());
            let lower = below.bytes_before(overlap.end) - below.bytes_before(overlap.start);
            let own = chunk.bytes_before(position + 1) - chunk.bytes_before(position);
            cost_per_byte(lower, own)
        };
        let files: Box<[f64]> = chunk.files().iter().enumerate().map(cost).collect();
        Self {
            least: files.iter().copied().fold(f64::INFINITY, f64::min),
            files,
        }
    }
}
