#!/usr/bin/env bash
# The tests of levigo v1.0.0, LevelDB for Go, on Windrow.
source "$(dirname "$0")/common.sh"
need go
cd "$work"
cat >go.mod <<'MODULE'
module levigo.test

go 1.21

require github.com/jmhodges/levigo v1.0.0
MODULE
export GOFLAGS=-mod=mod
go mod download github.com/jmhodges/levigo@v1.0.0 ||
    unreachable "the proxy for modules" go list -m -versions github.com/jmhodges/levigo
export CGO_CFLAGS="${include[*]}" CGO_LDFLAGS="-L$WINDROW_LIBRARIES -Wl,-rpath,$WINDROW_LIBRARIES"
go test -v -count=1 github.com/jmhodges/levigo | tee log
count=$(grep -c '^--- PASS' log) && [ "$count" = 3 ] || { echo "not 3 tests passed"; exit 1; }
echo "levigo: $count tests passed"
