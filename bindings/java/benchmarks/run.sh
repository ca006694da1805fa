#!/usr/bin/env bash
# Compares Windrow with RocksDB's own package for Java (rocksdbjni): gets, puts, batches and scans.
#
#   run.sh [ROUNDS [BENCHMARK...]]
#
# Both libraries run in turn, each in a virtual machine of its own, in folders in memory. A line has the medians of all rounds:
# of the time of a call, and of the time that its thread had a processor. Without arguments it makes 5 rounds of all benchmarks.
source "$(dirname "$0")/../common.sh"
library
maven package -Pbenchmarks --projects windrow,benchmarks -Dmaven.test.skip=true
classes=$(ls "$made"/windrow-benchmarks/windrow-benchmarks-[0-9]*.jar)
java=(java -Xms256m -Xmx256m "-Djava.io.tmpdir=$fast" "-Dwindrow.benchmarks.folder=$fast" -cp "$classes:$made/windrow-benchmarks/libraries/*")
"${java[@]}" io.windrow.benchmarks.Compare "${@:-5}"
