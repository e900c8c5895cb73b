"""Sharded outputs, under the name of `object_detection.dataset_tools.tf_record_creation_util`.

from tfrkit.compat.object_detection.dataset_tools import tf_record_creation_util
"""

from __future__ import annotations

from tfrkit.compat.slim.datasets.dataset_utils import open_sharded_output_tfrecords

__all__ = ["open_sharded_output_tfrecords"]
