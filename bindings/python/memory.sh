#!/usr/bin/env bash
# A million errors, cursors and opens of the package for Python. WINDROW_TIMES is another number of each.
#
# usage: memory.sh [errors | cursors | opens]
source "$(dirname "$0")/common.sh"
environment 'maturin>=1.9,<2' 'pytest>=9,<10'
# WINDROW_PYTHON_INSTALLED: the wheel is in the environment already.
[ -n "${WINDROW_PYTHON_INSTALLED:-}" ] || { wheel; installed; }
cd "$here"
tests=()
for kind in ${1:-errors cursors opens}; do
    tests+=("tests/test_memory.py::test_${kind}_leave_nothing")
done
WINDROW_TIMES=${WINDROW_TIMES:-1000000} "$python" -m pytest -s --quiet -p no:cacheprovider "${tests[@]}"
