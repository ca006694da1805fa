#!/usr/bin/env bash
# Windrow beside plyvel, rocksdict and py-lmdb: see compare.py, which takes the arguments.
source "$(dirname "$0")/../common.sh"
environment 'maturin>=1.9,<2' plyvel==1.5.1 'rocksdict>=0.3,<0.4' 'lmdb>=3,<4'
[ -n "${WINDROW_PYTHON_INSTALLED:-}" ] || { wheel; installed; }
"$python" "$here/benchmarks/compare.py" "$@"
