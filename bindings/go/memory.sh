#!/usr/bin/env bash
# A million opens, cursors and errors of the package for Go. WINDROW_TIMES is another number of each.
source "$(dirname "$0")/common.sh"
cd "$here"
WINDROW_TIMES=${WINDROW_TIMES:-1000000} go test -count=1 -timeout=0 -v -run '^TestOpensCursorsAndErrorsLeaveNothing$' .
