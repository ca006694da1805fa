//! The rules of `docs/style.md` that a machine can check, as failing tests.
//!
//! Each test walks the repository and lists every place that breaks its rule, with what to do.

#![expect(
    clippy::disallowed_methods,
    reason = "reads the repository itself, not a database"
)]
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a rule that cannot be checked fails"
)]

mod circles;
mod constants;
mod docs;
mod glossary;
mod layers;
mod source;
mod tree;

/// Fails with every fault of one rule.
#[track_caller]
fn report(rule: &str, faults: &[String]) {
    assert!(faults.is_empty(), "{rule}:\n  {}", faults.join("\n  "));
}
