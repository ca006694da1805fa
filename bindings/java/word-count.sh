#!/usr/bin/env bash
# The example for Kafka Streams: counts the words of its input, with a broker of its own. "? word" asks for a word.
source "$(dirname "$0")/common.sh"
streams
java -Xmx256m "-Djava.io.tmpdir=$work" "-Dlog4j2.configurationFile=$here/examples/streams/log4j2.properties" \
    -cp "$classpath" "$here/examples/streams/WordCount.java"
