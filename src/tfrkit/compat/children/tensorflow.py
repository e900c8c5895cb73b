"""`tensorflow` for processes that multiprocessing starts from a script of `tfr run`: they get only sys.path."""

import importlib
import sys

from tfrkit.compat import stand_ins

stand_ins.install()
del sys.modules["tensorflow"]
importlib.import_module("tensorflow")
