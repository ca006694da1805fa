#!/usr/bin/env bash
# The page of `windrow serve` in Chromium, beside a process that writes: it shows levels, rates and latencies, and no error.
#
# page.sh [PICTURE]: with a name, also makes the picture. That of docs/watching.md is docs/plots/page.png.
# WINDROW is the program; without it that of the tests' build.

set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../../.." && pwd)
picture=${1:+$(realpath "$1")}
work=$(mktemp -d)
processes=()
trap 'kill "${processes[@]}" 2>/dev/null || true; rm -rf "$work"' EXIT

source "$root/bindings/scripts.sh"

windrow=$(realpath "${WINDROW:-${CARGO_TARGET_DIR:-$root/target}/debug/windrow}")
browser=
for name in chromium chromium-browser google-chrome chrome-headless-shell; do
    if command -v "$name" >/dev/null; then browser=$name && break; fi
done
[ -n "$browser" ] || skip "there is no chromium"
cd "$work"

# A load of reads and writes over small levels.
"$windrow" bench ycsb-load,ycsb-a --records 60000 --value-size 200 --threads 2 --rate 20000 --duration 600 \
    --memtable-bytes 1M --file-bytes 1M --base-bytes 2M --db store >load 2>&1 &
processes+=($!)
for _ in $(seq 600); do
    # Its first part has ended: there are reads and levels.
    if grep -q '^ycsb-load' load && [ -e store/windrow/STATUS ]; then break; fi
    kill -0 "${processes[0]}" || { cat load && exit 1; }
    sleep 0.2
done
"$windrow" serve store/windrow --metrics 127.0.0.1:0 --json >address &
processes+=($!)
for _ in $(seq 300); do
    if [ -s address ]; then break; fi
    sleep 0.1
done
url=$(sed 's/.*"url":"\([^"]*\)".*/\1/' address)

# look BUDGET FLAG...: opens the page for so many milliseconds, which pass as fast as the answers come.
look() {
    local flags=(--headless --disable-gpu --hide-scrollbars "--user-data-dir=$work/profile" --enable-logging=stderr)
    # Root has no sandbox.
    [ "$(id -u)" != 0 ] || flags+=(--no-sandbox)
    timeout 120 "$browser" "${flags[@]}" "--virtual-time-budget=$1" "${@:2}" "$url" 2>console
}

# Rates need two writes of the status, a second apart.
rates='<td>gets</td><td>[1-9][0-9,]*</td>.*<td>writes</td><td>[1-9][0-9,]*</td>'
for budget in 30000 100000 300000 1000000; do
    look "$budget" --dump-dom >page
    if grep -Eq "$rates" page; then break; fi
done

# shows PATTERN: the page has it.
shows() {
    grep -Eq "$1" page || { cat page && echo "the page lacks: $1" && exit 1; }
}
shows '<div id="state" class="">statistics of the process that writes, of '
shows '<h2>Keyspace bench, [0-9.]+ [KM]?i?B in memtables</h2>'
shows '<td>level 1</td><td><div class="bar"><div style="width: [0-9.]+%;"( class="over")?></div></div></td><td>[0-9.]+ [KM]?i?B of '
shows '<td>level 2</td><td><div class="bar"><div style="width: [1-9][0-9.]*%;"'
shows "$rates"
shows '<td>memtables</td><td>[0-9.]+ [KM]iB</td>'
shows '<td>get</td><td>[1-9][0-9,]*</td><td>[0-9.]+ [^<]*s</td><td>'
shows '<td>compaction</td><td>[1-9]'
# What is no number shows as one of these.
if grep -E 'NaN|undefined|Infinity|\[object' <(sed '/<script>/,$d' page); then exit 1; fi
if grep CONSOLE console; then exit 1; fi

if [ -n "$picture" ]; then
    look "$budget" --window-size=1000,800 "--screenshot=$picture"
    [ "$(wc -c <"$picture")" -lt 150000 ] || { echo "the picture is too large" && exit 1; }
fi
echo "the page shows what it should"
