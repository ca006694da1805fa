//! Layer 4: the jobs that flush, merge and collect: read inputs, write outputs, decide nothing.

pub(crate) mod ahead;
pub(crate) mod garbage_collection;
pub(crate) mod merge;
pub(crate) mod output;
pub(crate) mod values;

#[cfg(test)]
mod tests;
