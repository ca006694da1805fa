#!/usr/bin/env bash
# Installs the header and the libraries of Windrow's C interface under a folder, for pkg-config and CMake.
#
# usage: install.sh PREFIX
makes=yes
source "$(dirname "$0")/common.sh"
prefix=${1:?usage: install.sh PREFIX}
built_here=${WINDROW_LIBRARIES:+no}
libraries windrow-c
version=$(sed -n 's/^version = "\(.*\)"/\1/p' "$root/Cargo.toml" | head -1)
mkdir -p "$prefix/include" "$prefix/lib/pkgconfig" "$prefix/lib/cmake/windrow" "$prefix/share/licenses/windrow"
prefix=$(cd "$prefix" && pwd)
install -m 644 "$root/crates/windrow-c/include/windrow.h" "$prefix/include"
install -m 644 "$WINDROW_LIBRARIES/libwindrow.a" "$prefix/lib"
install -m 755 "$WINDROW_LIBRARIES/libwindrow.so" "$prefix/lib"
install -m 644 "$root"/LICENSE-* "$prefix/share/licenses/windrow"
# Without what only a debugger reads.
if command -v strip >/dev/null; then strip --strip-debug "$prefix/lib/libwindrow.so" "$prefix/lib/libwindrow.a"; fi
# A library that others have built may have any paths.
if [ "$built_here" != no ] && grep -qFe "$root/" -e "${CARGO_HOME:-$HOME/.cargo}/" "$prefix"/lib/libwindrow.*; then
    echo "the libraries name paths of this machine" >&2
    exit 1
fi
escaped=$(printf '%s' "$prefix" | sed 's/[\\&|]/\\&/g')
sed "s|@PREFIX@|$escaped|; s|@VERSION@|$version|" "$here/windrow.pc.in" >"$prefix/lib/pkgconfig/windrow.pc"
install -m 644 "$here/windrow-config.cmake" "$prefix/lib/cmake/windrow"
sed "s|@VERSION@|$version|" "$here/windrow-config-version.cmake.in" >"$prefix/lib/cmake/windrow/windrow-config-version.cmake"
echo "installed under $prefix"
