"""`tf_record_creation_util`, as in `object_detection.dataset_tools`."""
