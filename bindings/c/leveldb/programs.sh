#!/usr/bin/env bash
# LevelDB's C interface on Windrow, by the C programs of this folder:
# - the library has every function of the header;
# - misuse.c, with and without sanitizers, and with the static library;
# - history.c, which must print the same with LevelDB's own library, if that is here.
#
# usage: programs.sh [SEEDS [OPERATIONS]]
source "$(dirname "$0")/common.sh"
seeds=${1:-4}
operations=${2:-600}

"$CC" "${include[@]}" -E "$work/header.c" | grep -o '\bleveldb_[a-z_]*\s*(' | tr -d ' (' | sort -u >"$work/declared"
nm -D --defined-only "$WINDROW_LIBRARIES/libleveldb.so" | awk '{print $3}' | grep '^leveldb_' | sort >"$work/defined"
diff "$work/declared" "$work/defined"
echo "functions: $(wc -l <"$work/declared") of the header, all defined"

if checks_handles libleveldb.so; then warnings+=(-DHANDLES_ARE_CHECKED); fi
build misuse "$here/misuse.c" "${warnings[@]}"
"$work/misuse" "$work/db"
"$CC" "${include[@]}" "${warnings[@]}" "$here/misuse.c" -o "$work/static" "$WINDROW_LIBRARIES/libleveldb.a" -lpthread -ldl -lm
"$work/static" "$work/db"
echo "misuse: passed with the shared and the static library"

build history "$here/history.c" "${warnings[@]}"
if has_sanitizers "$CC"; then
    build misuse-sanitized "$here/misuse.c" "${warnings[@]}" "${sanitizers[@]}"
    "$work/misuse-sanitized" "$work/db"
    build history-sanitized "$here/history.c" "${warnings[@]}" "${sanitizers[@]}"
    "$work/history-sanitized" "$work/db" 0 "$operations" >/dev/null
    echo "misuse and history: passed with sanitizers"
else
    skipped "sanitizers: $CC has none"
fi

echo 'int main(void) { return 0; }' >"$work/empty.c"
if ! "$CC" "$work/empty.c" -o "$work/empty" -l:libleveldb.so.1d 2>/dev/null; then
    skip "LevelDB's own library is not here, so histories are not compared"
fi
"$CC" "${include[@]}" "${warnings[@]}" "$here/history.c" -o "$work/own" -l:libleveldb.so.1d
for seed in $(seq "$seeds"); do
    "$work/history" "$work/db" "$seed" "$operations" >"$work/windrow"
    "$work/own" "$work/own.db" "$seed" "$operations" >"$work/leveldb"
    if ! cmp -s "$work/windrow" "$work/leveldb"; then
        echo "seed $seed: Windrow (<) and LevelDB (>) differ:"
        diff "$work/windrow" "$work/leveldb" | head -20
        exit 1
    fi
    lines=$((${lines:-0} + $(wc -l <"$work/windrow")))
done
echo "history: $seeds seeds of $operations operations, $lines equal answers"
