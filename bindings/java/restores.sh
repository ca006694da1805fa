#!/usr/bin/env bash
# Measures what bounds the restore of an empty disk: the same changelogs are restored into stores on RocksDB, on Windrow, into
# Kafka's own in memory, and into stores that throw everything away.
#
# Arguments are NAME=VALUE: engines, runs (of each; one more does not count), events, keys, bytes (of an event), copies (of five
# stores), partitions, threads, heap, port (the first of two), folder.
source "$(dirname "$0")/common.sh"
streams
java -Xmx256m -cp "$testpath" io.windrow.kafka.streams.endtoend.Restores "folder=$work/restores" "$@"
