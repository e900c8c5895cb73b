"""The version, in one place: the build reads it from here, and datasets are told who made them."""

VERSION = "0.1.0"
