#!/usr/bin/env bash
# A million opens, cursors and errors of the C interface: see memory.c. WINDROW_TIMES is another number of each.
source "$(dirname "$0")/../common.sh"
need "$CC"
libraries windrow-c
"$CC" "-I$root/crates/windrow-c/include" "${warnings[@]}" "$here/windrow/memory.c" -o "$work/memory" \
    "-L$WINDROW_LIBRARIES" -lwindrow "-Wl,-rpath,$WINDROW_LIBRARIES"
in_memory
WINDROW_TIMES=${WINDROW_TIMES:-1000000} "$work/memory" "$fast"
