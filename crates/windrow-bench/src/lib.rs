//! Loads that measure Windrow, and other engines beside it, in the manner of `db_bench`.
//!
//! One [`Engine`] trait, one set of [`Load`]s, one [`Report`] per load. The keys of a load follow
//! from the seed alone, every value says which key and load wrote it, every read checks what it
//! read, and a checksum over everything read lets two runs, or two engines, be compared.
//!
//! The loops around the engine allocate nothing per operation.
#![expect(
    clippy::disallowed_methods,
    reason = "a bench measures real time on the real file system"
)]

mod args;
mod data;
mod engine;
mod load;
mod report;
mod run;
mod windrow;
mod work;

pub use args::{BenchArgs, BlockSourceArg, CompressionArg, PresetArg, parse_bytes};
pub use data::DataSet;
pub use engine::{Counters, Engine, LevelShape, Scan};
pub use load::Load;
pub use report::{Report, header, row};
pub use run::run;
pub use windrow::WindrowEngine;

#[cfg(test)]
mod tests;
