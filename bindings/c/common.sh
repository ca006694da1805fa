# Read by the scripts of this folder: where the libraries are, and how programs are built and run.
#
# WINDROW_LIBRARIES is the folder of the built libraries. Without it a build makes them, with the profile WINDROW_C_PROFILE of
# Cargo; release without it.
# CC is the C compiler; cc without it.

set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
CC=${CC:-cc}

source "$root/bindings/scripts.sh"

# need COMMAND...: skips the script if a command is not here.
need() {
    local command
    for command in "$@"; do
        command -v "$command" >/dev/null || skip "there is no $command"
    done
}

# crates_answer: whether the registry of crates answers.
crates_answer() {
    mkdir -p "$work/ask/src"
    : >"$work/ask/src/lib.rs"
    printf '[package]\nname = "ask"\nversion = "0.0.0"\n[dependencies]\ncfg-if = "1"\n[workspace]\n' >"$work/ask/Cargo.toml"
    cargo generate-lockfile --manifest-path "$work/ask/Cargo.toml"
}

# in_memory: makes the folder `fast`, in memory if the system has such a place: an open of a database there waits for no disk.
in_memory() {
    fast=$work/fast
    if [ -w /dev/shm ]; then
        fast=$(mktemp -d /dev/shm/windrow.XXXXXX)
        trap 'rm -rf "$work" "$fast"' EXIT
    else
        mkdir "$fast"
    fi
}

# libraries PACKAGE...: builds the libraries of the packages if nobody has.
libraries() {
    if [ -z "${WINDROW_LIBRARIES:-}" ]; then
        need cargo
        local profile=${WINDROW_C_PROFILE:-release}
        (cd "$root" && RUSTFLAGS=$(without_paths) cargo build --profile "$profile" "${@/#/--package=}")
        WINDROW_LIBRARIES=${CARGO_TARGET_DIR:-$root/target}/${profile/#dev/debug}
    fi
    WINDROW_LIBRARIES=$(cd "$WINDROW_LIBRARIES" && pwd)
}

# checks_handles LIBRARY: whether the library has debug assertions, and so ends a program that uses a handle wrongly.
checks_handles() {
    grep -q 'what the program passes as' "$WINDROW_LIBRARIES/$1"
}

warnings=(-std=c11 -pthread -Wall -Wextra -Wpedantic -Werror)

# has_sanitizers CC: whether the compiler has the sanitizers.
has_sanitizers() {
    echo 'int main(void) { return 0; }' >"$work/empty.c"
    "$1" -fsanitize=address,undefined "$work/empty.c" -o "$work/empty" 2>/dev/null && "$work/empty"
}
sanitizers=(-g -fno-omit-frame-pointer -fsanitize=address,undefined -fno-sanitize-recover=all)
