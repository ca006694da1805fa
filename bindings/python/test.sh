#!/usr/bin/env bash
# The package for Python: builds the wheel, and runs on it
# - its own tests, the contract suite among them;
# - the examples;
# - mypy over users' programs and the package itself, and stubtest, which compares the stubs with the module;
# - clippy and rustfmt on the Rust part.
source "$(dirname "$0")/common.sh"
# Nobody takes an earlier wheel for this one, if what follows is skipped.
[ ! -x "$python" ] || "$python" -m pip uninstall --quiet --yes windrow
environment 'maturin>=1.9,<2' 'pytest>=9,<10' 'mypy>=2,<3' 'pyarrow>=26,<27'
# For an example. They are large, and not every Python has them.
"$python" -m pip install --quiet 'polars>=2,<3' 'pandas>=3,<4' || skipped "pip has no polars or pandas, so no example makes data frames"
wheel
installed

contents=$("$python" -m zipfile --list "$made"/wheels/*.whl | awk 'NR > 1 {print $1}')
unexpected=$(grep -Ev '^(windrow/([a-z_]+\.(py|pyi)|py\.typed|_windrow\.abi3\.so)|windrow-[0-9.]+\.dist-info/([A-Za-z]+|licenses/LICENSE-(APACHE|MIT)))$' <<<"$contents" || true)
[ "$(grep -c '/licenses/' <<<"$contents")" = 2 ] || { echo "the wheel lacks the licences"; exit 1; }
[ -z "$unexpected" ] || { echo "the wheel has files that nobody needs: $unexpected"; exit 1; }
"$python" -c '
import pathlib, sys, windrow
content = pathlib.Path(windrow.__file__).with_name("_windrow.abi3.so").read_bytes()
sys.exit(any(path.encode() in content for path in sys.argv[1:]))' "$root/" "$HOME/" "${CARGO_HOME:-$HOME/.cargo}/" \
    || { echo "the module names paths of this machine"; exit 1; }
echo "wheel: $(basename "$made"/wheels/*.whl)"

(cd "$here" && "$python" -m pytest --quiet -p no:cacheprovider)
for example in "$here"/examples/*.py; do
    (cd "$work" && "$python" "$example" >"$work/log" 2>&1) || { cat "$work/log"; exit 1; }
    echo "example: passed: $(basename "$example")"
done
(cd "$here" && "$python" -m mypy --cache-dir "$made/mypy")
# What only some versions of Python have, and what the stubs say by Generic.
printf '%s\n' 'windrow\._windrow\.Value\.__buffer__' 'windrow\._windrow\.(Entries|Iterator)\.__class_getitem__' >"$work/allowed"
(cd "$work" && "$python" -m mypy.stubtest --ignore-unused-allowlist --allowlist allowed windrow)
(cd "$here" && cargo fmt --check)
(cd "$here" && CARGO_TARGET_DIR=$built cargo clippy --quiet --locked -- -D warnings)
