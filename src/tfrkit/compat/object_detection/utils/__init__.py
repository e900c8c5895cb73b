"""`dataset_util` and `label_map_util`, as in `object_detection.utils`."""
