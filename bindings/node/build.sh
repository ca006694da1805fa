#!/usr/bin/env bash
# Builds the addon and packs the package, for npm install.
makes=yes
source "$(dirname "$0")/common.sh"
package
echo "$made"/windrow-*.tgz
