#!/usr/bin/env bash
# Builds the wheel, for pip install.
makes=yes
source "$(dirname "$0")/common.sh"
environment 'maturin>=1.9,<2' >&2
wheel >&2
echo "$made"/wheels/*.whl
