//! The data of a run: keys and values, the distributions that pick keys, and trace files.

pub(crate) mod data_set;
pub(crate) mod permutation;
pub(crate) mod random;
pub(crate) mod sizes;
pub(crate) mod trace;
pub(crate) mod ycsb;
pub(crate) mod zipf;
