"""TensorFlow's names for old scripts: `from tfrkit.compat import tensorflow as tf`.

Only what scripts do with TFRecord files is here, on NumPy; see `tfrkit.compat.tensorflow`.
"""
