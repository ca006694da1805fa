#!/usr/bin/env bash
# Windrow's C interface, by the C programs of this folder and the examples:
# - the library has every function of the header, and test.c calls each;
# - test.c with the shared and the static library, with sanitizers, and under valgrind;
# - misuse.c: handles that are used wrongly, if the library has debug assertions;
# - contract.c: the contract suite of all bindings, with and without sanitizers;
# - memory.c: opens, cursors and errors leave no memory behind. memory.sh makes a million of each;
# - the header in a program of C++;
# - the examples, by pkg-config and CMake from an installed copy.
source "$(dirname "$0")/../common.sh"
need "$CC"
libraries windrow-c
include=$root/crates/windrow-c/include
options=("-I$include" "${warnings[@]}")
shared=("-L$WINDROW_LIBRARIES" -lwindrow "-Wl,-rpath,$WINDROW_LIBRARIES")

grep -o '\bwindrow_[a-z_0-9]*(' "$include/windrow.h" | tr -d '(' | sort -u >"$work/declared"
nm -D --defined-only "$WINDROW_LIBRARIES/libwindrow.so" | awk '{print $3}' | grep '^windrow_' | sort >"$work/defined"
diff "$work/declared" "$work/defined"
while read -r function; do
    grep -q "\b$function(" "$here/windrow/test.c" || { echo "test.c does not call $function"; exit 1; }
done <"$work/declared"
echo "functions: $(wc -l <"$work/declared") of the header, all defined and called"

# run NAME COMMAND...: a program of the test in an empty folder.
run() {
    mkdir "$work/$1.folder"
    "${@:2}" "$work/$1" "$work/$1.folder" >"$work/log" || { cat "$work/log"; exit 1; }
    echo "test: passed: $1 ${*:2:1}"
}
"$CC" "${options[@]}" "$here/windrow/test.c" -o "$work/shared" "${shared[@]}"
run shared
"$CC" "${options[@]}" "$here/windrow/test.c" -o "$work/static" "$WINDROW_LIBRARIES/libwindrow.a" -lpthread -ldl -lm
run static
if has_sanitizers "$CC"; then
    "$CC" "${options[@]}" "${sanitizers[@]}" "$here/windrow/test.c" -o "$work/sanitized" "${shared[@]}"
    run sanitized
else
    skipped "sanitizers: $CC has none"
fi
if command -v valgrind >/dev/null; then
    cp "$work/shared" "$work/memory"
    run memory valgrind --quiet --error-exitcode=1 --leak-check=full --show-leak-kinds=definite,indirect \
        --errors-for-leak-kinds=definite,indirect
else
    skipped "valgrind is not here"
fi
if checks_handles libwindrow.so; then
    "$CC" "${options[@]}" "$here/windrow/misuse.c" -o "$work/misuse" "${shared[@]}"
    run misuse
else
    skipped "the library has no debug assertions, so it does not check handles"
fi
suite() {
    mkdir "$work/$1.folder"
    "$CC" "${options[@]}" "${@:2}" "$here/windrow/contract.c" -o "$work/$1" "${shared[@]}"
    echo "contract: passed: $1: $("$work/$1" "$root/bindings/contract/suite.json" "$work/$1.folder")"
}
suite contract
if has_sanitizers "$CC"; then suite contract-sanitized "${sanitizers[@]}"; fi
"$CC" "${options[@]}" "$here/windrow/memory.c" -o "$work/growth" "${shared[@]}"
in_memory
"$work/growth" "$fast"
if command -v c++ >/dev/null; then
    printf '%s\n' '#include "windrow.h"' 'int main() {' \
        '  windrow_bytes bytes = WINDROW_BYTES("ab", 2);' \
        '  return windrow_version() == nullptr || bytes.length != 2;' '}' >"$work/cxx.cc"
    c++ -std=c++11 "-I$include" -Wall -Wextra -Wpedantic -Werror "$work/cxx.cc" -o "$work/cxx" "${shared[@]}"
    "$work/cxx"
    echo "C++: passed"
fi

"$here/install.sh" "$work/installed" >/dev/null
export PKG_CONFIG_PATH=$work/installed/lib/pkgconfig LD_LIBRARY_PATH=$work/installed/lib
if command -v pkg-config >/dev/null; then
    for example in planets transfer; do
        # shellcheck disable=SC2046
        "$CC" "${warnings[@]}" "$here/examples/$example.c" -o "$work/$example" $(pkg-config --cflags --libs windrow)
        "$work/$example" "$work/$example.db"
    done
else
    skipped "pkg-config is not here"
fi
if command -v cmake >/dev/null; then
    cmake -S "$here/examples" -B "$work/build" -DCMAKE_PREFIX_PATH="$work/installed" >/dev/null
    cmake --build "$work/build" >/dev/null
    "$work/build/planets" "$work/cmake.db" >/dev/null
    "$work/build/transfer" "$work/cmake-static.db" >/dev/null
    mkdir "$work/later"
    printf 'cmake_minimum_required(VERSION 3.15)\nproject(later C)\nfind_package(windrow 99 REQUIRED CONFIG)\n' >"$work/later/CMakeLists.txt"
    if cmake -S "$work/later" -B "$work/later/build" -DCMAKE_PREFIX_PATH="$work/installed" >/dev/null 2>&1; then
        echo "CMake finds a version that does not exist"
        exit 1
    fi
    echo "CMake: passed"
else
    skipped "CMake is not here"
fi
