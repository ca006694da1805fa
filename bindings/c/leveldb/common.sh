# Read by the scripts of this folder: see ../common.sh. LEVELDB_INCLUDE is the folder with leveldb/c.h; without it, the
# header is that of the system.

source "$(dirname "${BASH_SOURCE[0]}")/../common.sh"
here=$here/leveldb
need "$CC"
include=()
if [ -n "${LEVELDB_INCLUDE:-}" ]; then include=("-I$LEVELDB_INCLUDE"); fi
echo '#include "leveldb/c.h"' >"$work/header.c"
"$CC" "${include[@]}" -c "$work/header.c" -o "$work/header.o" 2>/dev/null ||
    skip "there is no leveldb/c.h (Debian: libleveldb-dev)"
libraries windrow-leveldb

# build NAME SOURCE OPTION...: a program with Windrow's library.
build() {
    local name=$1 source=$2
    shift 2
    "${compiler:-$CC}" "${include[@]}" "$@" "$source" -o "$work/$name" \
        -L"$WINDROW_LIBRARIES" -lleveldb "-Wl,-rpath,$WINDROW_LIBRARIES"
}
