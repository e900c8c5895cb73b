"""Compression and sequences with tfrkit: the name of a compression in, nothing to say when reading.

    python job5_options_tfrkit.py pictures/ out/

xz is for carrying files around; TensorFlow cannot read it. What each compression costs and saves for a dataset of
yours is measured by `tfr bench`.
"""

import os
import sys

import numpy as np
from PIL import Image

import tfrkit as tfr

pictures, folder = sys.argv[1:]
os.makedirs(folder, exist_ok=True)
names = sorted(os.listdir(pictures))

for compression in ("none", "zlib", "gzip", "xz"):
    path = os.path.join(folder, f"{compression}.tfrecord")
    with tfr.Writer(path, compression=compression, floats="float32") as writer:
        for label, name in enumerate(names):
            pixels = np.asarray(Image.open(os.path.join(pictures, name)).convert("RGB"))
            means = pixels.mean(axis=(0, 1)).tolist()
            writer.write({"image": pixels, "label": label, "mean": means})
    print(f"{compression}: {os.path.getsize(path)} bytes")

with tfr.Writer(os.path.join(folder, "names.tfrecord")) as writer:
    frames = {"name": names, "length": [len(name) for name in names]}
    writer.write({"context": {"count": len(names)}, "feature_lists": frames})
row = tfr.open(os.path.join(folder, "names.tfrecord"))[0]
print("frames", row["context"]["count"], row["feature_lists"]["name"])
