#!/usr/bin/env bash
# Windrow beside classic-level: see compare.js, which takes the arguments.
source "$(dirname "$0")/../common.sh"
package
environment classic-level@3
node "$here/benchmarks/compare.js" "$@"
