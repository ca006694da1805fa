//! Values apart from their keys, on the real file system. Reads do not depend on the place of a value. Value files are
//! deleted after their last reference, and not before. Damage is named and affects no other value.

#![expect(clippy::unwrap_used, reason = "a step that fails ends the test")]
#![expect(
    clippy::disallowed_methods,
    reason = "the tests look at files and change them behind the back of the database"
)]

#[path = "../common/mod.rs"]
mod common;
mod damage;
mod fixture;
mod lifetimes;
mod round_trips;
mod transient_logs;
mod value_logs;
