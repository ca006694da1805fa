#!/usr/bin/env bash
# The 24 tests of the Rust crate `leveldb` 0.8.6 on Windrow. One of them cannot pass: docs/bindings.md says why.
source "$(dirname "$0")/common.sh"
need cargo
cd "$work"
mkdir -p fetch/src
: >fetch/src/lib.rs
cat >fetch/Cargo.toml <<'MANIFEST'
[package]
name = "fetch"
version = "0.0.0"
edition = "2021"

[dependencies]
leveldb = { version = "=0.8.6", default-features = false }

[workspace]
MANIFEST
(cd fetch && cargo vendor --quiet ../vendor >/dev/null) || unreachable "the registry of crates" crates_answer
cp -r vendor/leveldb crate
echo '[workspace]' >>crate/Cargo.toml
# In the place of the LevelDB that the crate would build.
mkdir -p crate/.cargo
cat >crate/.cargo/config.toml <<CONFIG
[target.$(rustc -vV | sed -n 's/^host: //p').leveldb]
rustc-link-search = ["native=$WINDROW_LIBRARIES"]
rustc-link-lib = ["dylib=leveldb"]
CONFIG
cd crate
# The tests run on one thread: two of them use the same folder at the same time otherwise.
LD_LIBRARY_PATH=$WINDROW_LIBRARIES CARGO_TARGET_DIR=$work/target \
    cargo test --quiet --test tests -- --test-threads=1 2>../errors | tee ../log || true
grep -q '^test result: ' ../log || { tail -20 ../errors; exit 1; }
grep -q '^test result: .* 23 passed; 1 failed' ../log
grep -A2 '^failures:$' ../log | grep -q 'comparator::comparator::test_comparator'
echo "leveldb (crate): 23 of 24 tests passed; the other needs keys in reverse order"
