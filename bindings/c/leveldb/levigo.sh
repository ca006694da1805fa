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
go mod download github.com/jmhodges/levigo@v1.0.0 || skip "the module proxy does not answer"
export CGO_CFLAGS="${include[*]}" CGO_LDFLAGS="-L$WINDROW_LIBRARIES -Wl,-rpath,$WINDROW_LIBRARIES"
go test -v -count=1 github.com/jmhodges/levigo | tee log
echo "levigo: $(grep -c '^--- PASS' log) tests passed"
