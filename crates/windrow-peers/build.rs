//! Stops a build of features whose needs this machine does not meet, with one sentence of what to
//! install. Cargo may run the build scripts of dependencies first, which then stop in their own words,
//! before they build much; the command `needs` tells the same in any case. It also hands the versions of
//! engines that are crates to the program, as the lock file has them.
#![expect(
    clippy::disallowed_methods,
    reason = "a build script learns of features from its environment"
)]

#[path = "src/needs.rs"]
#[expect(dead_code, reason = "the command `needs` uses the rest")]
mod needs;

use std::env;

/// Packages that engines are in, and the variables that hand on their versions.
const PACKAGES: [(&str, &str); 3] = [
    ("fjall", "FJALL_VERSION"),
    ("librocksdb-sys", "ROCKSDB_VERSION"),
    ("redb", "REDB_VERSION"),
];

const LOCK_FILE: &str = "../../Cargo.lock";

/// The folder of a RocksDB that is built already, whose version no lock file has.
const BUILT: (&str, &str) = ("librocksdb-sys", "ROCKSDB_LIB_DIR");

/// Hands on the version of each package, of which the lock file says `name = ".."` and on the next line
/// `version = ".."`.
fn tell_versions() {
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
    tell_versions();
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
