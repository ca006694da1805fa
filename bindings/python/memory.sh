#!/usr/bin/env bash
# A million opens, cursors and errors of the package for Python. WINDROW_TIMES is another number of each.
source "$(dirname "$0")/common.sh"
environment 'maturin>=1.9,<2' pytest
# WINDROW_PYTHON_INSTALLED: the wheel is in the environment already.
[ -n "${WINDROW_PYTHON_INSTALLED:-}" ] || wheel
cd "$here"
WINDROW_TIMES=${WINDROW_TIMES:-1000000} "$python" -m pytest -s --quiet -p no:cacheprovider -k opens_cursors_and_errors tests/test_memory.py
