#!/usr/bin/env bash
# Measures an application of Kafka Streams on Windrow beside the same one on RocksDB, in turns, and prints a table with what is
# wanted. It fails if the results of the two differ, and with check=true also if an aim is missed.
#
# Arguments are NAME=VALUE: events, keys, bytes (of an event), copies (of five stores), partitions, threads, heap, runs (of each,
# an even number; one more does not count), port (the first of two), check, folder.
source "$(dirname "$0")/common.sh"
streams
status=0
java -Xmx256m -cp "$testpath" io.windrow.kafka.streams.endtoend.BesideRocks "folder=$work/beside-rocksdb" "$@" || status=$?
# An aim is missed: the table says which.
[ "$status" != 2 ] || exit 1
if [ "$status" != 0 ]; then
    grep -hE 'WARN|ERROR|Exception' "$work/beside-rocksdb/application.log" | tail -n 50
fi
exit "$status"
