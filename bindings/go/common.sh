# Read by the scripts of this folder: Go, and the library that the package links.
#
# WINDROW_LIBRARIES is the folder of the built library. Without it a release build makes it.

set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)

source "$root/bindings/scripts.sh"

command -v go >/dev/null || skip "there is no go"
command -v "${CC:-cc}" >/dev/null || skip "there is no C compiler"
# Another toolchain is not fetched.
export GOTOOLCHAIN=local
version=$(go env GOVERSION)
printf 'go1.24\n%s\n' "$version" | sort --check=quiet --version-sort || skip "$version is older than go1.24"

if [ -z "${WINDROW_LIBRARIES:-}" ]; then
    command -v cargo >/dev/null || skip "there is no cargo"
    (cd "$root" && RUSTFLAGS=$(without_paths) cargo build --release --package=windrow-c)
    WINDROW_LIBRARIES=${CARGO_TARGET_DIR:-$root/target}/release
fi
WINDROW_LIBRARIES=$(cd "$WINDROW_LIBRARIES" && pwd)
export CGO_ENABLED=1
export CGO_CFLAGS="-O2 -g -I$root/crates/windrow-c/include"
export CGO_LDFLAGS="-L$WINDROW_LIBRARIES -Wl,-rpath,$WINDROW_LIBRARIES"
work=$(mktemp -d)
trap 'chmod -R u+w "$work" && rm -rf "$work"' EXIT
export TMPDIR=$work

# passed NAME COMMAND...: runs tests of Go and says how many passed.
passed() {
    local name=$1 count
    shift
    "$@" -v >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
    count=$(grep -c '^--- PASS' "$work/log") || { echo "$name: no test ran"; exit 1; }
    echo "$name: $count tests passed"
}

# has_race_detector: whether Go has it for this machine.
has_race_detector() {
    mkdir "$work/empty"
    echo 'package main; func main() {}' >"$work/empty/main.go"
    if ! go build -race -o "$work/empty/empty" "$work/empty/main.go" 2>/dev/null; then
        skipped "the race detector is not here"
        return 1
    fi
}

# modules: fetches what the module here needs.
modules() {
    go mod download || unreachable "the proxy for modules" go list -m -versions github.com/hashicorp/raft
}
