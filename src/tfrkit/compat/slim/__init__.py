"""What converters take from TensorFlow's slim: `from tfrkit.compat.slim.datasets import dataset_utils`."""
