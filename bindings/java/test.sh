#!/usr/bin/env bash
# The packages for Java: builds the native library and the jars, and runs on them
# - the tests of each module, the contract suite of the bindings and Kafka's own tests of stores among them;
# - the tests of the package windrow again under -Xcheck:jni, with which the virtual machine checks each call of the library;
# - the examples;
# - an end-to-end run of Kafka Streams with a broker, one kill and one abort (end-to-end.sh runs longer ones);
# - clippy and rustfmt on the Rust part.
# It says what it leaves out. Its other name is ci.
source "$(dirname "$0")/common.sh"
library
# What earlier runs have left does not count.
rm -rf "$made"/windrow*/surefire-reports
for path in "$root/" "$HOME/"; do
    ! grep -qF "$path" "$library" || { echo "the library names paths of this machine"; exit 1; }
done

maven package
echo "windrow: $(passed windrow) passed"
echo "windrow-kafka-streams: $(passed windrow-kafka-streams) passed, of which $(passed windrow-kafka-streams org.apache) are Kafka's own"
contents=$(jar tf "$made"/windrow/windrow-[0-9]*.jar)
unexpected=$(grep -Ev '^(META-INF/(MANIFEST\.MF)?|io/|io/windrow/|io/windrow/[A-Za-z$]+\.class|io/windrow/version|io/windrow/native/([a-z0-9_-]+/(libwindrow_java\.[a-z]+)?)?)$' <<<"$contents" || true)
[ -z "$unexpected" ] || { echo "the jar has files that nobody needs: $unexpected"; exit 1; }
echo "jar: $(basename "$made"/windrow/windrow-[0-9]*.jar)"

for example in "$here"/examples/*.java; do
    java -Djava.io.tmpdir="$work" -cp "$(ls "$made"/windrow/windrow-[0-9]*.jar)" "$example" >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
    echo "example: passed: $(basename "$example")"
done
maven surefire:test --projects windrow '-Dwindrow.jvm=-Xms256m -Xmx256m -XX:+AlwaysPreTouch -Xcheck:jni' -Dsurefire.useFile=true
# What the virtual machine prints goes to the log of Maven, or beside the reports.
if grep -E 'in native method|JNI (call|local refs)' "$work/maven.log" "$made"/windrow/surefire-reports/*; then
    echo "the virtual machine complains about the library"
    exit 1
fi
echo "windrow under -Xcheck:jni: $(passed windrow) passed"
"$here/end-to-end.sh" kills=1 aborts=1 events=300 >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
echo "end to end: $(grep -E '^(passed|skipped)' "$work/log")"
printf 'the cat and the dog\n? the\n' | "$here/word-count.sh" >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
grep -qE '^(the: 2|skipped: .*)$' "$work/log" || { cat "$work/log"; exit 1; }
echo "example: $(sed -n 's/^the: 2$/passed/p; /^skipped/p' "$work/log"): WordCount.java"
(cd "$here/native" && cargo fmt --check)
(cd "$here/native" && CARGO_TARGET_DIR=$built cargo clippy --quiet --locked -- -D warnings)
echo "not run here: end-to-end.sh with more kills or instances, beside-rocksdb.sh, restores.sh, benchmarks/run.sh"
