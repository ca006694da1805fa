#!/usr/bin/env bash
# Installs the header and the libraries of Windrow's C interface under a folder, for pkg-config and CMake.
#
# usage: install.sh PREFIX
source "$(dirname "$0")/common.sh"
prefix=${1:?usage: install.sh PREFIX}
libraries windrow-c
version=$(sed -n 's/^version = "\(.*\)"/\1/p' "$root/Cargo.toml" | head -1)
mkdir -p "$prefix/include" "$prefix/lib/pkgconfig" "$prefix/lib/cmake/windrow"
prefix=$(cd "$prefix" && pwd)
install -m 644 "$root/crates/windrow-c/include/windrow.h" "$prefix/include"
install -m 644 "$WINDROW_LIBRARIES/libwindrow.a" "$prefix/lib"
install -m 755 "$WINDROW_LIBRARIES/libwindrow.so" "$prefix/lib"
sed "s|@PREFIX@|$prefix|; s|@VERSION@|$version|" "$here/windrow.pc.in" >"$prefix/lib/pkgconfig/windrow.pc"
install -m 644 "$here/windrow-config.cmake" "$prefix/lib/cmake/windrow"
echo "installed under $prefix"
