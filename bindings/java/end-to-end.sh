#!/usr/bin/env bash
# An application of Kafka Streams on Windrow against a broker of Kafka: it processes exactly once in one or more instances, is
# killed while it restores and while it works, and the broker aborts transactions of it. Its results are compared with a plain
# computation, and its stores with their changelogs.
#
# Arguments are NAME=VALUE: seed (of the events and the kills), kills, aborts (every other one with a kill), instances, standbys,
# threads, copies (of the topology), partitions, events (of a round), keys, port (the first of two).
source "$(dirname "$0")/common.sh"
streams
java -Xmx256m -cp "$testpath" io.windrow.kafka.streams.endtoend.EndToEnd "folder=$fast/end-to-end" "$@" || {
    grep -hE 'WARN|ERROR|Exception' "$fast/end-to-end/application.log" | tail -n 50
    exit 1
}
