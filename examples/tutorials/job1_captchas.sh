#!/usr/bin/env bash
# Captchas in one command: five characters of a file name become five labels.
#
#     bash job1_captchas.sh captcha/images captcha/ [number of test pictures, 500]
#
# Sizes, the text and the character set are stored too, so a reader need not know them.
set -euo pipefail
tfr build file-names "$1" -o "$2" --label '^(?P<text>[0-9A-Za-z]{5})' --charset alnum \
    --gray --resize 224x224 --split "test=${3:-500}" --shards 5 --seed 0
