"""The version: read by the build, and stored in datasets."""

VERSION = "0.1.0"
