"""TensorFlow's names for old scripts: `from tfrkit.compat import tensorflow as tf`.

Only names that scripts use with TFRecord files are here, implemented on NumPy; see `tfrkit.compat.tensorflow`.
"""
