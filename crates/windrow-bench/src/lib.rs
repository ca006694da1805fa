//! Loads that measure Windrow and other engines, with the names and meaning of `db_bench` and YCSB.
//!
//! The bench has one [`Engine`] trait, one set of [`Load`]s, and one [`Report`] per load. The keys of a load follow
//! from the seed only. Every value identifies its key and its write, and every read checks its value. A checksum
//! over all reads makes two runs or two engines comparable.
//!
//! The loops around the engine allocate no memory per operation.
#![expect(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "a bench measures real time on the real file system, and writes its results to files"
)]

mod args;
pub mod campaign;
mod data;
mod engine;
pub mod html;
mod load;
mod measure;
pub mod paper;
mod report;

pub use args::{
    BenchArgs, BlockSourceArg, CompressionArg, FilterAllocationArg, MediumInPlaceArg,
    MediumOrderArg, MixModel, MixgraphArgs, PolicyArgs, PresetArg, WarmUp, parse_bytes,
    parse_threshold,
};
pub use data::data_set::{Checked, DataSet, is_filtered};
pub use data::sizes::{Mix, ValueSizes};
pub use data::trace::{Trace, TraceOp};
pub use engine::windrow_engine::WindrowEngine;
pub use engine::{
    Answer, CompactionShape, Counters, Engine, Entry, Feature, IoShape, LevelShape, MergeOperator,
    Scan, SeparatedReads, StallShape, TIME_TO_LIVE, TransactionCalls, Transactions,
};
pub use load::Load;
pub(crate) use load::mixgraph::Mixture;
pub use load::run::{check_loads, run_loads};
pub use measure::caches::DroppedCaches;
pub use measure::device::DeviceReport;
pub use measure::limits::{DeviceArgs, DeviceLimits};
pub use measure::memory::{HoldArgs, hold_memory};
pub use measure::process::wait_until_quiet;
pub use measure::progress::{Progress, ProgressPoint};
pub use measure::series::SeriesPoint;
pub use measure::tally::{CompanionReport, CurvePoint, Operation, OperationReport, Percentiles};
pub use report::destination::check_destination;
pub use report::output::{exit_code, print, print_object, reader_is_gone};
pub use report::{Report, header, lines};

#[cfg(test)]
mod tests;
