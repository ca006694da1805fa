#!/usr/bin/env bash
# An application of Kafka Streams on Windrow against a broker of Kafka: it processes exactly once, is killed while it restores
# and while it works, and its results are compared with a plain computation.
#
# WINDROW_SEED is the seed of the events and the kills, WINDROW_KILLS the number of kills, WINDROW_PORT the first of two ports.
source "$(dirname "$0")/common.sh"
library
maven test-compile org.apache.maven.plugins:maven-dependency-plugin:3.8.1:build-classpath "-Dmdep.outputFile=$work/classpath"
classes=$made/windrow-kafka-streams
java -Xmx256m -cp "$classes/test-classes:$classes/classes:$(cat "$work/classpath")" io.windrow.kafka.streams.endtoend.EndToEnd \
    "$fast/end-to-end" "${WINDROW_SEED:-1}" "${WINDROW_KILLS:-5}" "${WINDROW_PORT:-29092}" || {
    tail -n 50 "$fast/end-to-end/application.log"
    exit 1
}
