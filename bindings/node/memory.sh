#!/usr/bin/env bash
# A million errors, cursors, transactions and opens of the package for Node. WINDROW_TIMES is another number of each.
#
# usage: memory.sh [errors | cursors | transactions | opens]
case ${1:-errors} in
    errors | cursors | transactions | opens) ;;
    *) echo "usage: memory.sh [errors | cursors | transactions | opens]" >&2; exit 2 ;;
esac
source "$(dirname "$0")/common.sh"
# WINDROW_NODE_INSTALLED: the package is in the project already.
[ -n "${WINDROW_NODE_INSTALLED:-}" ] || { package && environment; }
WINDROW_TIMES=${WINDROW_TIMES:-1000000} node --expose-gc --test --test-reporter=spec \
    --test-name-pattern="^(${1:-errors|cursors|transactions|opens}) leave nothing$" "$here/tests/memory.test.js"
