#!/usr/bin/env bash
# Apples and oranges in one command: one file, its splits chosen later.
#
#     bash job2_fruit.sh data/ fruit.tfrecord
#
# Then, as often as wanted and in any ratio:
#
#     train, test = tfr.open("fruit.tfrecord").split({"train": 0.8, "test": 0.2}, seed=0)
set -euo pipefail
tfr build file-names "$1" -o "$2" --label '^(?P<class>[a-z]+)' --resize 32x32 --encode raw
