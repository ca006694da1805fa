//! Values apart from their keys, on the real file system. Reads do not depend on the place of a value.
//! Value files are deleted after their last reference, and not before. Errors name damaged values, and
//! other values can still be read.

#![expect(clippy::unwrap_used, reason = "a step that fails ends the test")]
#![expect(
    clippy::disallowed_methods,
    reason = "the tests look at files and damage them"
)]

#[path = "../common/mod.rs"]
mod common;
mod damage;
mod fixture;
mod lifetimes;
mod round_trips;
mod transient_logs;
mod value_logs;
