"""The parts of TensorFlow's slim that converters use: `from tfrkit.compat.slim.datasets import dataset_utils`."""
