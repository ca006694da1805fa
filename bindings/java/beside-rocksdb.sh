#!/usr/bin/env bash
# Measures an application of Kafka Streams on Windrow beside the same one on RocksDB, in turns, and prints a table.
#
# Arguments are NAME=VALUE: runs (of each), events, keys, copies (of five stores), partitions, threads, heap, port (the first
# of two), folder.
source "$(dirname "$0")/common.sh"
streams
java -Xmx256m -cp "$testpath" io.windrow.kafka.streams.endtoend.BesideRocks "folder=$work/beside-rocksdb" "$@" || {
    grep -hE 'WARN|ERROR|Exception' "$work/beside-rocksdb/application.log" | tail -n 50
    exit 1
}
