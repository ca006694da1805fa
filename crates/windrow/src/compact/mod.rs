//! Layer 4: the jobs that flush and merge: read inputs, write outputs, decide nothing.

pub(crate) mod merge;
pub(crate) mod output;
pub(crate) mod values;

#[cfg(test)]
mod tests;
