//! Stops a build of features whose needs this machine does not meet, with one sentence of what to
//! install. Cargo may run the build scripts of dependencies first, which then stop in their own words,
//! before they build much; the command `needs` tells the same in any case.
#![expect(
    clippy::disallowed_methods,
    reason = "a build script learns of features from its environment"
)]

#[path = "src/needs.rs"]
#[expect(dead_code, reason = "the command `needs` uses the rest")]
mod needs;

use std::env;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=src/needs.rs");
    println!("cargo::rerun-if-env-changed=ROCKSDB_LIB_DIR");
    for feature in &needs::FEATURES {
        for need in feature.needs {
            println!("cargo::rerun-if-env-changed={}", need.variable());
        }
        let is_on = format!("CARGO_FEATURE_{}", feature.name.to_uppercase());
        if env::var(is_on).is_err() {
            continue;
        }
        if let Some(advice) = feature.advice() {
            println!("cargo::error={advice}; `cargo run -p windrow-peers -- needs` tells more");
        }
    }
}
