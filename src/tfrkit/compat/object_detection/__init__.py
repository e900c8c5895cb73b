"""What converters take from the TensorFlow Object Detection API; see `tfrkit.compat.object_detection.utils`."""
