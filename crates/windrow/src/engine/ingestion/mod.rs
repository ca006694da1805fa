//! Ingestion: adds whole tables to keyspaces as one commit.
//!
//! A [bulk load](bulk_load) writes entries to tables, after a [sort] if they come in any order. [`external`] takes tables that were written outside of the
//! database, by a [`TableWriter`]. [`tables`] adds both to the trees, with one sequence number for all of their entries.
//!
//! Invariants:
//! - I1: All tables of an ingestion count, or none: one edit names them.
//! - I2: At the place of an ingestion in the commit order no memtable holds a key between the ends of a table, and
//!   neither does the level of the table or one above, unless that is level 0. So readers, who search from the top,
//!   meet its entries before all older ones.
//!
//! Concurrency: any thread; [`tables`] says what it claims.

pub(super) mod bulk_load;
mod external;
mod sort;
mod table_writer;
mod tables;

pub use table_writer::{TableSummary, TableWriter};
pub(super) use tables::Claims;

use crate::base::Error;

/// The error of `what`, which takes keys in ascending order.
#[cold]
fn out_of_order(what: &str, key: &[u8], last: &[u8]) -> Error {
    let (key, last) = (key.escape_ascii(), last.escape_ascii());
    Error::invalid_argument(format!(
        "{what} needs keys in strictly ascending order: \"{key}\" comes after \"{last}\""
    ))
}
