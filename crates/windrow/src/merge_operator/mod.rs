//! Layer 1: merge operators, which fold operands into the value of their key.
//!
//! A writer of an operand does not read the key. The operands of a key, from the newest down to the next entry of
//! another kind, are its [`Chain`]. A [`KeyspaceOperator`] folds a chain: reads into the value that they return,
//! flushes and compactions into one entry.
//!
//! I1. An operator is only called through [`KeyspaceOperator`], which catches its panics and checks its results.
//!
//! Concurrency: any number of threads fold at once.

mod chain;
mod keyspace_operator;
mod operator;
mod registry;

pub(crate) use chain::{Chain, KEPT_BYTES};
pub(crate) use keyspace_operator::KeyspaceOperator;
pub use operator::{MergeError, MergeOperator, Operands};
pub(crate) use registry::MergeOperators;
