#!/usr/bin/env bash
# The package for Go: gofmt, vet and the warnings of the C compiler, then
# - its own tests, the contract suite among them;
# - the same under the race detector, with the checks of pointers that Go has for tests;
# - the examples.
source "$(dirname "$0")/common.sh"
cd "$here"

unformatted=$(gofmt -l .)
[ -z "$unformatted" ] || { echo "gofmt would change $unformatted"; exit 1; }
go vet ./...
for file in *.c; do
    "${CC:-cc}" -std=c11 -Wall -Wextra -Wpedantic -Werror -fsyntax-only "-I$root/crates/windrow-c/include" "$file"
done
passed tests go test -count=1 .
if has_race_detector; then
    passed "race detector" env GOEXPERIMENT=cgocheck2 go test -race -count=1 . -seeds=2
fi
for example in examples/*/; do
    go run "./$example" "$work/$(basename "$example").db" >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
    echo "example: passed: $(basename "$example")"
done
