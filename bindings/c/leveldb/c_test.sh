#!/usr/bin/env bash
# LevelDB's own test of its C interface, c_test.c, unchanged, on Windrow: plain and with sanitizers. The npm package
# classic-level has the source.
source "$(dirname "$0")/common.sh"
need npm tar
if [ -z "${LEVELDB_C_TEST:-}" ]; then
    (cd "$work" && npm pack --silent classic-level@3.0.0 >/dev/null && tar xzf classic-level-3.0.0.tgz) ||
        skip "the registry of npm does not answer"
    LEVELDB_C_TEST=$(echo "$work"/package/deps/leveldb/leveldb-*/db/c_test.c)
fi
export TEST_TMPDIR=$work
# The names of the phases, which the test prints, count the checks.
run() {
    "$work/$1" 2>"$work/log" || { cat "$work/log"; exit 1; }
    grep -qx PASS "$work/log"
    echo "c_test: $(grep -c '^=== Test' "$work/log") phases passed $2"
}
build c_test "$LEVELDB_C_TEST"
run c_test ""
for compiler in "$CC" clang; do
    if command -v "$compiler" >/dev/null && has_sanitizers "$compiler"; then
        build "c_test-$compiler" "$LEVELDB_C_TEST" "${sanitizers[@]}"
        run "c_test-$compiler" "with the sanitizers of $compiler"
    else
        skipped "sanitizers: $compiler has none"
    fi
done
