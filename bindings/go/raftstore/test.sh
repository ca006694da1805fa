#!/usr/bin/env bash
# The store for raft: its own tests, again under the race detector, and those of raft-boltdb 2.3.1 with its benchmarks, which nobody has changed.
source "$(dirname "$0")/../common.sh"
cd "$here/raftstore"
raft_boltdb=github.com/hashicorp/raft-boltdb/v2@v2.3.1
export GOFLAGS=-mod=readonly
modules

unformatted=$(gofmt -l .)
[ -z "$unformatted" ] || { echo "gofmt would change $unformatted"; exit 1; }
go vet ./...
passed tests go test -count=1 .
if has_race_detector; then passed "race detector" go test -race -count=1 .; fi

(cd "$work" && go mod download -json "$raft_boltdb" >"$work/module") ||
    unreachable "the proxy for modules" go list -m -versions github.com/hashicorp/raft
theirs=$(sed -n 's/.*"Dir": "\(.*\)".*/\1/p' "$work/module")
mkdir "$work/boltdb"
cp testdata/boltdb/* "$theirs"/bolt_store_test.go "$theirs"/bench_test.go "$work/boltdb"
chmod u+w "$work/boltdb"/*
cd "$work/boltdb"
go mod edit -replace "github.com/windrow-db/windrow/bindings/go=$here" \
    -replace "github.com/windrow-db/windrow/bindings/go/raftstore=$here/raftstore"
modules
# What is about bbolt itself: see the README.
printf '%s\n' TestBoltOptionsReadOnly TestBoltOptionsTimeout TestNewBoltStore >"$work/expected"
go test -count=1 -vet=off -v . >"$work/log" 2>&1 || true
grep '^--- FAIL' "$work/log" | cut -d ' ' -f 3 | sort >"$work/failed" || true
grep -q '^--- PASS' "$work/log" && diff "$work/expected" "$work/failed" || { cat "$work/log"; exit 1; }
# All others have passed, and no panic has ended them early.
[ "$(grep -cE '^--- (PASS|FAIL)' "$work/log")" = "$(grep -c '^func Test' bolt_store_test.go)" ] || { cat "$work/log"; exit 1; }
echo "raft-boltdb: $(grep -c '^--- PASS' "$work/log") of $(grep -c '^func Test' bolt_store_test.go) tests passed"
go test -count=1 -vet=off -run '^$' -bench . -benchtime=100x . >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
echo "raft-boltdb: $(grep -c '^Benchmark' "$work/log") benchmarks ran"
