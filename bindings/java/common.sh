# Read by the scripts of this folder: the native library, and Maven.
#
# Everything is made under WINDROW_JAVA_TARGET, without it in target/java; but Cargo builds in target/packages.
# WINDROW_JAR_PROFILE is the profile of Cargo that builds the native library; release without it.
# WINDROW_MAVEN has further arguments for Maven, for example -o to stay offline.

set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
made=${WINDROW_JAVA_TARGET:-${CARGO_TARGET_DIR:-$root/target}/java}
# The packages for Python and Node have the same: they share the build of the engine.
built=${CARGO_TARGET_DIR:-$root/target}/packages

source "$root/bindings/scripts.sh"

command -v cargo >/dev/null || skip "there is no cargo"
command -v javac >/dev/null || skip "there is no JDK"
version=$(javac -version 2>&1 | sed -E 's/^javac ([0-9]+).*/\1/')
[ "$version" -ge 17 ] || skip "the JDK has version $version: 17 is needed"
command -v mvn >/dev/null || skip "there is no Maven"
mkdir -p "$made" "$built"
made=$(cd "$made" && pwd)
built=$(cd "$built" && pwd)
work=$(mktemp -d)
# Where tests have their databases: in memory, so that they wait for no disk, if it may have programs (the library is one).
fast=$(mktemp -d /dev/shm/windrow.XXXXXX 2>/dev/null) || fast=$work
trap 'rm -rf "$work" "$fast"' EXIT
cp "$(type -P true)" "$fast/true"
"$fast/true" 2>/dev/null || fast=$work

# library: builds the native library, and puts it where the jar takes it from. The paths of this machine do not enter it.
library() {
    local profile=${WINDROW_JAR_PROFILE:-release} system processor file
    (cd "$here/native" && CARGO_TARGET_DIR=$built RUSTFLAGS=$(without_paths) \
        cargo build --quiet --locked --profile "$profile")
    case $(uname) in
        Darwin) system=macos file=libwindrow_java.dylib ;;
        *) system=linux file=libwindrow_java.so ;;
    esac
    processor=$(uname -m)
    [ "$processor" != arm64 ] || processor=aarch64
    [ "$profile" != dev ] || profile=debug
    rm -rf "$made/native"
    mkdir -p "$made/native/io/windrow/native/$system-$processor"
    library=$made/native/io/windrow/native/$system-$processor/$file
    cp "$built/$profile/$file" "$library"
}

# maven ARGUMENT...: runs Maven over the modules. Without a repository, or without what it lacks, the script is skipped.
maven() {
    local arguments=(--batch-mode --quiet --file "$here/pom.xml" "-Dwindrow.made=$made" "-Dwindrow.tmpdir=$fast")
    # shellcheck disable=SC2206 # several arguments
    arguments+=(${WINDROW_MAVEN:-})
    if ! mvn "${arguments[@]}" "$@" >"$work/maven.log" 2>&1; then
        if grep -qE 'Could not (transfer|resolve|find)|Cannot access|PluginResolutionException|DependencyResolutionException' "$work/maven.log"; then
            skip "Maven cannot fetch what the tests need: $(grep -m 1 -E 'Could not|Cannot access' "$work/maven.log" | cut -c 1-200)"
        fi
        cat "$work/maven.log"
        exit 1
    fi
}

# streams: builds the module for Kafka Streams. "$classpath" has all that an application and a broker need, and "$testpath" the
# programs of the tests, too.
streams() {
    library
    maven test-compile org.apache.maven.plugins:maven-dependency-plugin:3.8.1:build-classpath "-Dmdep.outputFile=$work/classpath"
    classpath=$made/windrow-kafka-streams/classes:$(cat "$work/classpath")
    testpath=$made/windrow-kafka-streams/test-classes:$classpath
}

# passed MODULE [BEGINNING]: says how many tests of a module have passed, of all classes or of those whose names begin so.
passed() {
    cat "$made/$1"/surefire-reports/TEST-${2:-}*.xml | sed -nE 's/.*<testsuite .* tests="([0-9]+)".*/\1/p' | awk '{ sum += $1 } END { print sum + 0 }'
}
