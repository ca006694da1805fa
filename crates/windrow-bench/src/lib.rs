//! Loads that measure Windrow, and other engines beside it, in the manner of `db_bench` and of YCSB.
//!
//! One [`Engine`] trait, one set of [`Load`]s, one [`Report`] per load. The keys of a load follow
//! from the seed alone, every value says which key and load wrote it, every read checks what it
//! read, and a checksum over everything read lets two runs, or two engines, be compared.
//!
//! The loops around the engine allocate nothing per operation.
#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "a bench measures real time on the real file system, and keeps what it finds in files"
)]

mod args;
pub mod campaign;
mod contents;
mod data;
mod destination;
mod engine;
pub mod experiment;
mod figures;
mod gauge;
pub mod host;
pub mod html;
mod job;
mod kinds;
mod load;
mod machine;
mod mixgraph;
mod outcome;
mod output;
mod owned_folder;
pub mod paper;
mod permutation;
mod process;
mod progress;
mod rate_limiter;
mod read_work;
mod record_work;
mod records;
mod replay;
mod report;
mod run;
mod series;
mod sizes;
mod stopwatch;
mod tally;
mod trace;
mod windrow;
mod work;
mod ycsb;
mod zipf;

pub use args::{
    BenchArgs, BlockSourceArg, CompressionArg, FilterAllocationArg, MediumInPlaceArg,
    MediumOrderArg, MixModel, MixgraphArgs, PolicyArgs, PresetArg, WarmUp, parse_bytes,
    parse_threshold,
};
pub use data::{Checked, DataSet};
pub use destination::check_destination;
pub use engine::{
    Answer, CompactionShape, Counters, Engine, Entry, LevelShape, LoadShape, Scan, StallShape,
    ValuesApart,
};
pub use load::Load;
pub(crate) use mixgraph::Mixture;
pub use output::{exit_code, print, print_object, reader_is_gone};
pub use process::wait_until_quiet;
pub use progress::{Moment, Progress};
pub use report::{Report, header, lines};
pub use run::{check_loads, run_loads};
pub use series::SeriesPoint;
pub use sizes::{Mix, ValueSizes};
pub use tally::{BesideReport, CurvePoint, Operation, OperationReport, Percentiles};
pub use trace::{Asked, Trace};
pub use windrow::WindrowEngine;

#[cfg(test)]
mod tests;
