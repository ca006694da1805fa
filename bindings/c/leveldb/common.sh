# Read by the scripts of this folder: see ../common.sh. LEVELDB_INCLUDE is the folder with leveldb/c.h; without it, the
# header is that of the system, or of Debian's package, which goes into a folder of the script.

source "$(dirname "${BASH_SOURCE[0]}")/../common.sh"
here=$here/leveldb
need "$CC"
include=()
if [ -n "${LEVELDB_INCLUDE:-}" ]; then include=("-I$LEVELDB_INCLUDE"); fi
echo '#include "leveldb/c.h"' >"$work/header.c"
has_header() { "$CC" "${include[@]}" -c "$work/header.c" -o "$work/header.o" 2>/dev/null; }
if ! has_header; then
    [ -z "${LEVELDB_INCLUDE:-}" ] || { echo "there is no leveldb/c.h in $LEVELDB_INCLUDE"; exit 1; }
    (cd "$work" && apt-get download libleveldb-dev && dpkg -x libleveldb-dev_*.deb leveldb) >/dev/null 2>&1 || true
    include=("-I$work/leveldb/usr/include")
    has_header || skip "there is no leveldb/c.h (Debian: libleveldb-dev)"
fi
libraries windrow-leveldb

# build NAME SOURCE OPTION...: a program with Windrow's library.
build() {
    local name=$1 source=$2
    shift 2
    "${compiler:-$CC}" "${include[@]}" "$@" "$source" -o "$work/$name" \
        -L"$WINDROW_LIBRARIES" -lleveldb "-Wl,-rpath,$WINDROW_LIBRARIES"
}
