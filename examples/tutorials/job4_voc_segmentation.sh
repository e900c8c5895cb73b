#!/usr/bin/env bash
# Pascal VOC segmentation in one command: masks are palette indices, checked against the classes.
#
#     bash job4_voc_segmentation.sh VOCdevkit/VOC2007 voc/
#
# Images keep their own encoded bytes. To read:
#
#     for batch in tfr.open("voc/")["train"].batch(8): ...
set -euo pipefail
tfr build voc-seg "$1" -o "$2" --set train --set val
