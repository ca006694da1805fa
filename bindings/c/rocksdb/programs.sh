#!/usr/bin/env bash
# RocksDB's C interface on Windrow, by the C programs of this folder:
# - every function of the library is one of the header, and a program calls each with null and 0 for all arguments;
# - test.c and beside.c with the shared and the static library, with sanitizers, and under valgrind;
# - history.c, which must print the same with RocksDB itself, if ROCKSDB_LIBRARY is its static library.
#
# usage: programs.sh [SEEDS [OPERATIONS]]
source "$(dirname "$0")/common.sh"
need "$CC"
seeds=${1:-4}
operations=${2:-600}
if [ -z "${ROCKSDB_INCLUDE:-}" ]; then fetch_crate; else include=$ROCKSDB_INCLUDE; fi
libraries windrow-rocksdb
options=("-I$include" "${warnings[@]}")
shared=("-L$WINDROW_LIBRARIES" -lrocksdb "-Wl,-rpath,$WINDROW_LIBRARIES")

# The parameters of each function of the header, as a call with null and 0 for all of them.
echo '#include "rocksdb/c.h"' >"$work/header.c"
"$CC" "-I$include" -E -P "$work/header.c" | tr '\n' ' ' | tr ';' '\n' |
    sed -n 's/.*[ *]\(rocksdb_[A-Za-z0-9_]*\) *(\(.*\)) *$/\1 \2/p' |
    awk '{
        name = $1; $1 = ""; depth = 0; count = 1
        for (at = 1; at <= length($0); at++) {
            letter = substr($0, at, 1)
            if (letter == "(") depth++
            if (letter == ")") depth--
            if (letter == "," && depth == 0) count++
        }
        if ($0 ~ /^ *(void)? *$/) count = 0
        arguments = count > 0 ? "0" : ""
        for (at = 1; at < count; at++) arguments = arguments ", 0"
        print name " (void)" name "(" arguments ");"
    }' | sort -u >"$work/calls"
cut -d' ' -f1 "$work/calls" >"$work/declared"
nm -D --defined-only "$WINDROW_LIBRARIES/librocksdb.so" | awk '{print $3}' | grep '^rocksdb_' | sort >"$work/defined"
comm -13 "$work/declared" "$work/defined" >"$work/unknown"
if [ -s "$work/unknown" ]; then
    echo "not functions of the header:"
    cat "$work/unknown"
    exit 1
fi
{
    printf '#include "rocksdb/c.h"\nint main(void) {\n'
    join -o 2.2,2.3,2.4,2.5,2.6,2.7,2.8,2.9,2.10,2.11,2.12,2.13,2.14 "$work/defined" "$work/calls"
    printf 'return 0;\n}\n'
} >"$work/null.c"
"$CC" "-I$include" -std=c11 "$work/null.c" -o "$work/null" "${shared[@]}"
"$work/null"
echo "functions: $(wc -l <"$work/defined") of $(wc -l <"$work/declared") of the header, each called with null"

# run NAME COMMAND...: a program in a folder of its own.
run() {
    "${@:2}" "$work/$1" "$work/$1.db" >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
    echo "test: passed: $1 ${*:2:1}"
}
has_sanitizers "$CC" || skipped "sanitizers: $CC has none"
command -v valgrind >/dev/null || skipped "valgrind is not here"
for program in test beside; do
    "$CC" "${options[@]}" "$here/$program.c" -o "$work/$program-shared" "${shared[@]}"
    run "$program-shared"
    "$CC" "${options[@]}" "$here/$program.c" -o "$work/$program-static" \
        "$WINDROW_LIBRARIES/librocksdb.a" -lpthread -ldl -lm
    run "$program-static"
    if has_sanitizers "$CC"; then
        "$CC" "${options[@]}" "${sanitizers[@]}" "$here/$program.c" -o "$work/$program-sanitized" "${shared[@]}"
        run "$program-sanitized"
    fi
    if command -v valgrind >/dev/null; then
        cp "$work/$program-shared" "$work/$program-memory"
        run "$program-memory" valgrind --quiet --error-exitcode=1 --leak-check=full \
            --show-leak-kinds=definite,indirect --errors-for-leak-kinds=definite,indirect
    fi
done

"$CC" "${options[@]}" "$here/history.c" -o "$work/history" "${shared[@]}"
"$work/history" "$work/history.db" 0 "$operations" >/dev/null
if [ -z "${ROCKSDB_LIBRARY:-}" ]; then
    skip "ROCKSDB_LIBRARY is not set, so histories are not compared with RocksDB"
fi
"$CC" "${options[@]}" "$here/history.c" -o "$work/own" "$ROCKSDB_LIBRARY" ${ROCKSDB_LINK:-} -lstdc++ -lpthread -ldl -lm
for seed in $(seq "$seeds"); do
    "$work/history" "$work/windrow.db" "$seed" "$operations" >"$work/windrow"
    "$work/own" "$work/rocksdb.db" "$seed" "$operations" >"$work/rocksdb"
    if ! cmp -s "$work/windrow" "$work/rocksdb"; then
        echo "seed $seed: Windrow (<) and RocksDB (>) differ:"
        diff "$work/windrow" "$work/rocksdb" | head -20
        exit 1
    fi
    lines=$((${lines:-0} + $(wc -l <"$work/windrow")))
done
echo "history: $seeds seeds of $operations operations, $lines equal answers"
