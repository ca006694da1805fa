#!/usr/bin/env bash
# plyvel's own tests, unchanged, on windrow.plyvel. pip fetches them.
source "$(dirname "$0")/common.sh"
environment 'maturin>=1.9,<2' 'pytest>=9,<10'
# WINDROW_PYTHON_INSTALLED: the wheel is in the environment already, if test.sh was not skipped.
if [ -z "${WINDROW_PYTHON_INSTALLED:-}" ]; then
    wheel
    installed
elif ! "$python" -m pip show --quiet windrow 2>/dev/null; then
    skip "test.sh has not installed the wheel"
fi
version=1.5.1
archive=$made/plyvel-$version.tar.gz
[ -e "$archive" ] || "$python" -m pip download --quiet --no-deps --no-binary :all: --dest "$made" "plyvel==$version" \
    || unreachable "the registry of pip" registry
tar -xzf "$archive" -C "$work" "plyvel-$version/test"
echo 'import sys, windrow.plyvel; sys.modules["plyvel"] = windrow.plyvel' >"$work/plyvel.py"

# What cannot pass, and why.
excluded=(
    # It orders keys without regard to case. Windrow orders them by their bytes.
    test_comparator
    # It writes keys of up to 99,900 bytes, and the empty one. Windrow's have 1 byte to 64 KiB.
    test_approximate_sizes
)
# It opens a folder that nobody may write to; the superuser may.
[ "$(id -u)" != 0 ] || excluded+=(test_open_read_only_dir)
options=("${excluded[@]/#/--deselect=test_plyvel.py::}")
cd "$work/plyvel-$version/test"
PYTHONPATH=$work "$python" -m pytest --quiet -p no:cacheprovider "${options[@]}" test_plyvel.py
echo "plyvel $version: passed, without ${excluded[*]}"
