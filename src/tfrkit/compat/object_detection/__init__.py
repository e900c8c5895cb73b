"""The parts of the TensorFlow Object Detection API that converters use; see `tfrkit.compat.object_detection.utils`."""
