//! The program as a person or a script meets it: output, JSON and exit codes.
#![expect(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "these tests run the program on real files, and fail by panicking"
)]

mod administration;
mod advise;
mod backup;
mod bench;
mod beside_a_writer;
mod changes;
mod common;
mod demo;
mod encrypted;
mod entries;
mod exit_codes;
mod help;
mod load;
mod log;
mod other_writes;
mod simulate;
mod statistics;
mod value_files;
mod watch;
