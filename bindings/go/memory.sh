#!/usr/bin/env bash
# A million errors, cursors and opens of the package for Go. WINDROW_TIMES is another number of each.
#
# usage: memory.sh [Errors | Cursors | Opens]
case ${1:-Errors} in
    Errors | Cursors | Opens) ;;
    *) echo "usage: memory.sh [Errors | Cursors | Opens]" >&2; exit 2 ;;
esac
source "$(dirname "$0")/common.sh"
cd "$here"
WINDROW_TIMES=${WINDROW_TIMES:-1000000} go test -count=1 -timeout=0 -v -run "^Test(${1:-Errors|Cursors|Opens})LeaveNothing$" .
