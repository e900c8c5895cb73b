"""`tensorflow` in a process that multiprocessing starts for a script of `tfr run`: it gets our sys.path only."""

import importlib
import sys

from tfrkit.compat import stand_ins

stand_ins.install()
del sys.modules["tensorflow"]
importlib.import_module("tensorflow")
