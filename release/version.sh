#!/usr/bin/env bash
# Prints the version in the sources.
sed -n 's/^VERSION = "\(.*\)"$/\1/p' "$(dirname "$0")/../src/tfrkit/_version.py"
