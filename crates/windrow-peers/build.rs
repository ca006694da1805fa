//! Stops the build of a feature whose needs the machine does not meet, with one sentence of advice. It also passes the
//! versions of engine crates from the lock file to the program.
//!
//! Cargo may run the build scripts of dependencies first. Those then stop early with their own messages. The command
//! `needs` gives the advice in any case.
#![expect(
    clippy::disallowed_methods,
    reason = "a build script reads the features from its environment"
)]

#[path = "src/needs.rs"]
#[expect(dead_code, reason = "the command `needs` uses the rest")]
mod needs;

use std::env;

/// The packages of engines, and the variables for their versions.
const PACKAGES: [(&str, &str); 3] = [
    ("fjall", "FJALL_VERSION"),
    ("librocksdb-sys", "ROCKSDB_VERSION"),
    ("redb", "REDB_VERSION"),
];

const LOCK_FILE: &str = "../../Cargo.lock";

/// The folder of a prebuilt RocksDB. The lock file does not have its version.
const BUILT: (&str, &str) = ("librocksdb-sys", "ROCKSDB_LIB_DIR");

/// Passes the version of each package on. The lock file has `name = ".."`, and `version = ".."` on the next line.
fn pass_versions() {
    println!("cargo::rerun-if-changed={LOCK_FILE}");
    let lock = std::fs::read_to_string(LOCK_FILE).unwrap_or_default();
    for (package, variable) in PACKAGES {
        let name = format!("name = \"{package}\"");
        let line = lock.lines().skip_while(|line| *line != name).nth(1);
        let version = line.and_then(|line| line.split('"').nth(1));
        let version = match env::var(BUILT.1) {
            Ok(_) if package == BUILT.0 => Some("that of ROCKSDB_LIB_DIR"),
            _ => version,
        };
        println!(
            "cargo::rustc-env={variable}={}",
            version.unwrap_or("unknown")
        );
    }
}

fn main() {
    pass_versions();
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
            println!(
                "cargo::error={advice}; `cargo run -p windrow-peers -- needs` lists all needs"
            );
        }
    }
}
