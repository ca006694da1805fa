#!/usr/bin/env bash
# Windrow beside goleveldb and bbolt: see main.go, which takes the arguments before the folder.
source "$(dirname "$0")/../common.sh"
cd "$here/benchmarks"
go run . "$@" "$work"
