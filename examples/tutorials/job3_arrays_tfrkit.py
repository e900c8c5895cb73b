"""Arrays and one photo with tfrkit: dtype and shape are kept, so nothing has to be remembered.

python job3_arrays_tfrkit.py photo.jpg out/
"""

import os
import sys

import numpy as np
from PIL import Image

import tfrkit as tfr

photo, folder = sys.argv[1:]
os.makedirs(folder, exist_ok=True)

with tfr.Writer(os.path.join(folder, "data.tfrecord")) as writer:
    writer.write_columns({"data": np.arange(10), "label": np.arange(10) % 2})
rows = list(tfr.open(os.path.join(folder, "data.tfrecord")))
print("data", [row["data"] for row in rows])
print("label", [row["label"] for row in rows])

with tfr.Writer(os.path.join(folder, "photo.tfrecord")) as writer:
    writer.write({"name": "cat", "data": np.asarray(Image.open(photo))})
row = tfr.open(os.path.join(folder, "photo.tfrecord"))[0]
print(row["name"].decode(), row["data"].shape, row["data"].dtype)
