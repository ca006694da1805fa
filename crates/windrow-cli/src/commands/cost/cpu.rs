//! What the processor takes, in microseconds of one core.
//!
//! The constants are fitted to the processor time of `windrow bench` under settings that differ in segments,
//! filter bits, sizes and placement; docs/advise.md has the commands. Another machine is faster or slower in
//! all of them, which changes no choice.

/// A write: log, memtable, system call.
pub(super) const WRITE: f64 = 2.3;
/// Each byte that is written to the log.
pub(super) const BYTE_LOGGED: f64 = 0.0035;
/// Each byte that is written to a value log.
pub(super) const BYTE_TO_VALUE_LOG: f64 = 0.0018;
/// Each entry that a flush or a compaction writes to a table.
pub(super) const ENTRY_MOVED: f64 = 0.05;
/// In addition, if its value is in a value log; measured with the large load of docs/advise.md.
pub(super) const POINTER_MOVED: f64 = 0.1;
/// Each filter bit of such an entry.
pub(super) const FILTER_BIT: f64 = 0.001;
/// Each byte of tables that flushes and compactions write or read.
pub(super) const BYTE_COMPACTED: f64 = 0.000_65;
/// Each byte that is written to transient logs.
pub(super) const BYTE_TO_TRANSIENT_LOG: f64 = 0.000_9;
/// Each byte that compactions read of transient logs and of relocation tables, in smaller reads than of tables.
pub(super) const BYTE_OF_TRANSIENT_LOG: f64 = 0.003;
/// Each byte that garbage collections write, and each that they read.
pub(super) const BYTE_TO_GC_OUTPUT: f64 = 0.002;
pub(super) const BYTE_OF_GC: f64 = 0.000_6;
/// A get, without what follows.
pub(super) const GET: f64 = 0.15;
/// Each run that it consults, the filter included.
pub(super) const RUN_CONSULTED: f64 = 0.07;
/// Each block that is searched.
pub(super) const BLOCK_SEARCHED: f64 = 0.85;
/// A key that it finds.
pub(super) const FOUND: f64 = 0.6;
/// Each byte of the value.
pub(super) const BYTE_RETURNED: f64 = 0.000_3;
/// A scan.
pub(super) const SCAN: f64 = 0.6;
/// Each run that it opens.
pub(super) const RUN_OPENED: f64 = 1.1;
/// Each entry of a scan.
pub(super) const STEP: f64 = 0.04;
/// The same for each run beyond the first.
pub(super) const STEP_PER_RUN: f64 = 0.035;
/// Each byte of tables that a scan reads.
pub(super) const BYTE_SCANNED: f64 = 0.000_13;
/// A value in a value log, and one in a transient log, which has its neighbours beside it.
pub(super) const VALUE_LOG_VALUE: f64 = 0.45;
pub(super) const TRANSIENT_LOG_VALUE: f64 = 0.25;
