#!/usr/bin/env bash
# Builds the packages for Java, without their tests, and prints where they are.
makes=yes
source "$(dirname "$0")/common.sh"
library
maven package -Dmaven.test.skip=true
ls "$made"/windrow/windrow-[0-9]*.jar "$made"/windrow-kafka-streams/windrow-kafka-streams-[0-9]*.jar
