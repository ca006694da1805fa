#!/usr/bin/env bash
# Tests of the Rust crate `rocksdb` 0.25.0 on Windrow, unchanged. Those in crate.expected do not pass: docs/bindings.md says
# why. The tests of the compiler's messages are left out: they do not call the library. The build needs libclang.
source "$(dirname "$0")/common.sh"
fetch_crate
libraries windrow-rocksdb
cd "$work/crate"
# A workspace of its own, and the toolchain of this one.
echo '[workspace]' >>Cargo.toml
rm -f rust-toolchain.toml
export ROCKSDB_LIB_DIR=$WINDROW_LIBRARIES ROCKSDB_INCLUDE_DIR=$include LD_LIBRARY_PATH=$WINDROW_LIBRARIES
export CARGO_TARGET_DIR=$work/target CARGO_PROFILE_DEV_DEBUG=0
suites=(db iterator column_family write_batch checkpoint transaction_db optimistic_transaction_db
    compactionfilter)
# Without the features of the crate: the codecs are those of Windrow.
cargo test --no-default-features --features bindgen-runtime --no-fail-fast "${suites[@]/#/--test=test_}" \
    -- --skip outlive --skip test_open_with_multiple_refs_as_single_threaded >../log 2>../errors || true
count=$(grep -c '^test result: ' ../log || true)
if [ "$count" != "${#suites[@]}" ]; then
    # What bindgen says without it.
    grep -q 'Unable to find libclang' ../errors && skip "bindgen finds no libclang"
    tail -40 ../errors
    exit 1
fi
sed -n 's/^test \(.*\) \.\.\. FAILED$/\1/p' ../log | sort >../failed
grep -v '^#' "$here/crate.expected" | sort >../expected
if ! diff ../expected ../failed; then
    echo "tests that should pass (>) or fail (<)"
    sed -n '/^failures:$/,$p' ../log
    exit 1
fi
echo "rocksdb (crate): $(grep -c '^test .* ok$' ../log) tests passed; $(wc -l <../failed) cannot, as expected"
