"""The native core. All other modules import it from here."""

from tfrkit._core import *  # noqa: F403
