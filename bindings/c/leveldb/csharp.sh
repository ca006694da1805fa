#!/usr/bin/env bash
# Debian's libleveldb1.2-cil, LevelDB for C#, on Windrow, by a program that uses each of its classes (csharp.cs): the package
# has no tests.
#
# Without `mono`, `mcs` and the assembly in the system, Debian's packages go into a folder of the script.
source "$(dirname "$0")/../common.sh"
here=$here/leveldb
need "$CC"
libraries windrow-leveldb

assembly=/usr/lib/cli/leveldb-sharp-1.2/leveldb-sharp.dll
mono=(mono)
compile=(mcs)
if ! command -v mono >/dev/null || ! command -v mcs >/dev/null || [ ! -e "$assembly" ]; then
    need apt-get dpkg
    system=$work/system
    mkdir "$system"
    (cd "$work" && apt-get download libleveldb1.2-cil mono-runtime-sgen mono-runtime-common mono-mcs libmono-corlib4.5-dll \
        libmono-system4.0-cil libmono-system-core4.0-cil libmono-system-xml4.0-cil libmono-system-configuration4.0-cil \
        libmono-system-security4.0-cil libmono-system-numerics4.0-cil libmono-security4.0-cil >/dev/null 2>&1) ||
        skip "there is no mono with libleveldb1.2-cil, and Debian's packages do not answer"
    for package in "$work"/*.deb; do dpkg -x "$package" "$system"; done
    assembly=$system$assembly
    export MONO_PATH=$system/usr/lib/mono/4.5 MONO_CFG_DIR=$system/etc MONO_GAC_PREFIX=$system/usr
    mono=(env "LD_LIBRARY_PATH=$system/usr/lib" "$system/usr/bin/mono-sgen")
    compile=("${mono[@]}" "$system/usr/lib/mono/4.5/mcs.exe")
fi

# The assembly loads the library by the name that it has in Debian.
mkdir "$work/program"
cp "$assembly" "$assembly.config" "$work/program"
ln -s "$WINDROW_LIBRARIES/libleveldb.so" "$work/program/libleveldb.so.1d"
cd "$work/program"
"${compile[@]}" -nologo "-reference:leveldb-sharp.dll" -out:csharp.exe "$here/csharp.cs"
LD_LIBRARY_PATH=$work/program "${mono[@]}" csharp.exe "$work/db" >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
echo "libleveldb1.2-cil: $(cat "$work/log") passed"
