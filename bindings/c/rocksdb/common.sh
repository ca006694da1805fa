# Read by the scripts of this folder: see ../common.sh. RocksDB's header comes out of the source that the crate
# `librocksdb-sys` has. ROCKSDB_INCLUDE is the folder with rocksdb/c.h, if it is elsewhere.

source "$(dirname "${BASH_SOURCE[0]}")/../common.sh"
here=$here/rocksdb
need cargo

# fetch_crate: puts the crate `rocksdb` into $work/crate; `include` is the folder of the header.
fetch_crate() {
    mkdir -p "$work/fetch/src"
    : >"$work/fetch/src/lib.rs"
    cat >"$work/fetch/Cargo.toml" <<'MANIFEST'
[package]
name = "fetch"
version = "0.0.0"
edition = "2021"

[dependencies]
rocksdb = { version = "=0.25.0", default-features = false }

[workspace]
MANIFEST
    (cd "$work/fetch" && cargo vendor --quiet ../vendor >/dev/null) || unreachable "the registry of crates" crates_answer
    cp -r "$work/vendor/rocksdb" "$work/crate"
    include=${ROCKSDB_INCLUDE:-$work/vendor/librocksdb-sys/rocksdb/include}
}
