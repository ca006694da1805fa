# Read by the scripts of this folder: the addon, the package, and a project in which it is installed.
#
# Everything is made under WINDROW_NODE_TARGET, without it in target/node; but Cargo builds in target/packages.
# WINDROW_ADDON_PROFILE is the profile of Cargo that builds the addon; release without it.

set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
made=${WINDROW_NODE_TARGET:-${CARGO_TARGET_DIR:-$root/target}/node}
# The package for Python has the same: they share the build of the engine.
built=${CARGO_TARGET_DIR:-$root/target}/packages

source "$root/bindings/scripts.sh"

command -v cargo >/dev/null || skip "there is no cargo"
command -v node >/dev/null || skip "there is no node"
command -v npm >/dev/null || skip "there is no npm"
node -e 'process.exit(Number(process.versions.node.split(".")[0]) < 20 ? 1 : 0)' || skip "$(node --version) is older than 20"
mkdir -p "$made/project"
made=$(cd "$made" && pwd)
mkdir -p "$built"
built=$(cd "$built" && pwd)
project=$made/project
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export npm_config_audit=false npm_config_fund=false npm_config_update_notifier=false
# Where programs that are not in the project find its packages.
export NODE_PATH=$project/node_modules
export TMPDIR=$work

# package: builds the addon, and packs it with the files of the package. The paths of this machine do not enter it.
package() {
    local profile=${WINDROW_ADDON_PROFILE:-release}
    (cd "$here" && CARGO_TARGET_DIR=$built RUSTFLAGS=$(without_paths) \
        cargo build --quiet --locked --profile "$profile")
    case $(uname) in
        Darwin) local library=libwindrow_node.dylib ;;
        *) local library=libwindrow_node.so ;;
    esac
    [ "$profile" != dev ] || profile=debug
    rm -rf "$made/package" "$made"/windrow-*.tgz
    mkdir "$made/package"
    cp -r "$here"/{index.js,index.d.ts,lib,package.json,README.md} "$root"/LICENSE-{APACHE,MIT} "$made/package"
    # The addon is for this machine alone.
    (cd "$made/package" && npm pkg set "os[]=$(node -p process.platform)" "cpu[]=$(node -p process.arch)")
    cp "$built/$profile/$library" "$made/package/windrow.node"
    (cd "$made/package" && npm pack --silent --pack-destination "$made" >/dev/null)
}

# environment PACKAGE...: installs the package as others get it, and the other packages.
environment() {
    echo '{"private": true}' >"$project/package.json"
    rm -rf "$project/node_modules/windrow"
    (cd "$project" && npm install --silent --no-save --no-package-lock "$made"/windrow-*.tgz "$@") ||
        unreachable "the registry of npm" npm view tape version
}
