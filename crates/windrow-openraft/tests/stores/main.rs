//! The stores under openraft's own suite, power failures and damage.

#![expect(clippy::unwrap_used, reason = "a test fails by a panic")]

mod common;
mod damage;
mod faults;
mod folder;
mod installations;
mod power_failures;
mod snapshots;
mod suite;
