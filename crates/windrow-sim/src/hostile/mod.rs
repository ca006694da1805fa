//! Hostile files: what somebody makes who knows the format, so that all checksums are right.
//!
//! A flipped bit fails a checksum. An attacker computes it again. So these *targets* take real files, change what is under
//! their checksums, seal them again, and give them to all that reads files. Bytes choose the file and the changes: those of a
//! fuzzer (`fuzz`), or those of a seed. A target panics if the engine does, if an error has a kind that hostile bytes
//! must not cause, or if a check finds nothing and the answers contradict each other. It
//! bounds the number of reads; whoever calls it bounds the memory.
//!
//! - `bytes`: numbers, checksums, changes. `logs` and `units`: the parts of files. `forge`: a whole folder. `store`: a
//!   store of backups. `archive`: the changes between them.
//! - `corpus`: the real databases.
//!
//! Concurrency: targets share only the corpus.

mod archive;
pub(crate) mod bytes;
mod choices;
mod corpus;
mod forge;
mod logs;
mod store;
mod targets;
#[cfg(test)]
mod tests;
mod units;

pub use choices::random_choices;
pub use targets::{Seen, TARGETS, Target, run_target};
