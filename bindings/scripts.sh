# Read by the common.sh of each language: what their scripts share. `root` is the folder of the repository, and `work` one that
# goes with the script.
#
# A script skips a check for what the machine lacks, and never for a failure of Windrow's own code. WINDROW_SKIPPED names a file that gets a line for each; .ci/run shows them at its end.

script=$(cd "$(dirname "$0")" && pwd)/$(basename "$0")
script=${script#"$root/"}

# skipped REASON: says that the script skips a check and goes on.
skipped() {
    printf 'skipped: %s: %s\n' "$script" "$1"
    [ -z "${WINDROW_SKIPPED:-}" ] || printf 'skipped: %s: %s\n' "$script" "$1" >>"$WINDROW_SKIPPED"
}

# skip REASON: ends the script. One that makes what its user has asked for sets `makes` before, and has failed then.
skip() {
    if [ -n "${makes:-}" ]; then
        printf '%s: %s\n' "$script" "$1" >&2
        exit 1
    fi
    skipped "$1"
    exit 0
}

# unreachable REGISTRY COMMAND...: what has failed is skipped if the registry does not answer the command either, which asks for
# what is there for certain. Otherwise it is a failure.
unreachable() {
    local registry=$1
    shift
    if (cd "$work" && "$@") >/dev/null 2>&1; then exit 1; fi
    skip "$registry does not answer"
}

# without_paths: the flags of a build into which the paths of this machine do not enter.
without_paths() {
    echo "${RUSTFLAGS:-} --remap-path-prefix=${CARGO_HOME:-$HOME/.cargo}=cargo --remap-path-prefix=$root=windrow \
--remap-path-prefix=$(rustc --print sysroot)=rust"
}
