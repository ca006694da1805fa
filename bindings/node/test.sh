#!/usr/bin/env bash
# The package for Node: builds the addon, packs and installs the package, and runs on it
# - the suite of abstract-level 3, unchanged;
# - its own tests, the contract suite among them;
# - the examples;
# - tsc over a user's program and the types;
# - clippy and rustfmt on the Rust part.
source "$(dirname "$0")/common.sh"
package
environment tape@5 typescript@5 @types/node@20

contents=$(tar tzf "$made"/windrow-*.tgz)
unexpected=$(grep -Ev '^package/(index\.js|index\.d\.ts|lib/[a-z-]+\.js|windrow\.node|package\.json|README\.md|LICENSE-(APACHE|MIT))$' <<<"$contents" || true)
[ "$(grep -c '/LICENSE-' <<<"$contents")" = 2 ] || { echo "the package lacks the licences"; exit 1; }
[ -z "$unexpected" ] || { echo "the package has files that nobody needs: $unexpected"; exit 1; }
for path in "$root/" "$HOME/" "${CARGO_HOME:-$HOME/.cargo}/"; do
    ! grep -qF "$path" "$made/package/windrow.node" || { echo "the addon names paths of this machine"; exit 1; }
done
echo "package: $(basename "$made"/windrow-*.tgz)"

# passed NAME COMMAND...: runs the tests and says how many passed.
passed() {
    local name=$1 count
    shift
    "$@" >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
    count=$(sed -nE 's/^# pass +([0-9]+)$/\1/p' "$work/log")
    [ "${count:-0}" -gt 0 ] || { echo "$name: no test ran"; exit 1; }
    echo "$name: $count passed"
}

passed "abstract-level" node "$here/tests/abstract-level.js"
passed "tests" node --expose-gc --test --test-reporter=tap "$here"/tests/*.test.js
for example in "$here"/examples/*.js; do
    (cd "$work" && node "$example" >"$work/log" 2>&1) || { cat "$work/log"; exit 1; }
    echo "example: passed: $(basename "$example")"
done
cp "$here/tests/types.ts" "$project/types.ts"
(cd "$project" && node_modules/.bin/tsc --noEmit --strict --target es2022 --lib es2022,esnext.disposable \
    --module node16 --moduleResolution node16 types.ts)
echo "types: passed"
(cd "$here" && cargo fmt --check)
(cd "$here" && CARGO_TARGET_DIR=$built cargo clippy --quiet --locked -- -D warnings)
