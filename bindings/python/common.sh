# Read by the scripts of this folder: an environment with the package and what its tests need.
#
# Everything is made under WINDROW_PYTHON_TARGET, without it in target/python; but Cargo builds in target/packages.
# PYTHON is the interpreter; python3 without it.
# WINDROW_WHEEL_PROFILE is the profile of Cargo that builds the wheel; release without it.

set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
made=${WINDROW_PYTHON_TARGET:-${CARGO_TARGET_DIR:-$root/target}/python}
# The package for Node has the same: they share the build of the engine.
built=${CARGO_TARGET_DIR:-$root/target}/packages
PYTHON=${PYTHON:-python3}

source "$root/bindings/scripts.sh"

command -v cargo >/dev/null || skip "there is no cargo"
command -v "$PYTHON" >/dev/null || skip "there is no $PYTHON"
"$PYTHON" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || skip "$PYTHON is older than 3.11"
"$PYTHON" -c 'import venv, ensurepip' 2>/dev/null || skip "$PYTHON has no venv"
mkdir -p "$made"
made=$(cd "$made" && pwd)
mkdir -p "$built"
built=$(cd "$built" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export PYTHONDONTWRITEBYTECODE=1 PIP_DISABLE_PIP_VERSION_CHECK=1
python=$made/venv/bin/python

# environment PACKAGE...: makes the environment if it is not there, and installs what is missing.
environment() {
    [ -x "$python" ] || "$PYTHON" -m venv "$made/venv"
    "$python" -m pip install --quiet "$@" || unreachable "the registry of pip" registry
}

# registry: whether the registry of pip answers.
registry() {
    "$python" -m pip download --quiet --no-cache-dir --no-deps --dest "$work/registry" iniconfig
}

# wheel: builds the wheel. The paths of this machine do not enter it.
wheel() {
    rm -rf "$made/wheels"
    (cd "$here" && CARGO_TARGET_DIR=$built RUSTFLAGS=$(without_paths) \
        "$python" -m maturin build --quiet --profile "${WINDROW_WHEEL_PROFILE:-release}" --locked --out "$made/wheels")
}

# installed: installs the wheel.
installed() {
    "$python" -m pip install --quiet --force-reinstall --no-deps "$made"/wheels/*.whl
}
