"""Names that have no effect on TFRecord files: accepted, so that scripts that use them run."""

from __future__ import annotations

import contextlib
from typing import Any

from tfrkit.compat.namespace import Namespace


class Options:
    """Settings for devices and sessions. Any setting may be passed or assigned, at any depth; none has an effect."""

    def __init__(self, *values: Any, **settings: Any) -> None:
        self.__dict__.update(settings)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        self.__dict__[name] = inner = Options()
        return inner


class ConfigProto(Options):
    """Settings of a Session, ignored."""


class GPUOptions(Options):
    """GPU settings, ignored."""


class Graph:
    """A graph that nothing is added to: there is only one graph."""

    @contextlib.contextmanager
    def as_default(self) -> Any:
        yield self

    def finalize(self) -> None:
        """Do nothing."""


@contextlib.contextmanager
def scope(*values: Any, **settings: Any) -> Any:
    """Enter a `with` block that changes nothing: devices and name scopes are ignored."""
    yield values[0] if values else None


def ignore(*values: Any, **settings: Any) -> None:
    """Accept any arguments and do nothing."""


def as_bytes(value: Any, encoding: str = "utf-8") -> bytes:
    """Encode text to bytes; return bytes unchanged."""
    if not isinstance(value, (str, bytes, bytearray)):
        raise TypeError(f"expected bytes or text, got {type(value).__name__}")
    return value.encode(encoding) if isinstance(value, str) else bytes(value)


def as_text(value: Any, encoding: str = "utf-8") -> str:
    """Decode bytes to text; return text unchanged."""
    if not isinstance(value, (str, bytes)):
        raise TypeError(f"expected bytes or text, got {type(value).__name__}")
    return value.decode(encoding) if isinstance(value, bytes) else value


def as_str_any(value: Any, encoding: str = "utf-8") -> str:
    """Decode bytes to text; convert anything else with `str`."""
    return value.decode(encoding) if isinstance(value, bytes) else str(value)


def _no_devices(*values: Any, **options: Any) -> list[Any]:
    """Return an empty list: there are no devices."""
    return []


def _no(*values: Any, **options: Any) -> bool:
    """Return False: there are no devices."""
    return False


def _no_name() -> str:
    """Return the empty string: there is no device."""
    return ""


_DEVICES = {
    "get_visible_devices": _no_devices,
    "list_logical_devices": _no_devices,
    "list_physical_devices": _no_devices,
    "set_visible_devices": ignore,
}
CONFIG = Namespace(
    "tf.config",
    **_DEVICES,
    experimental=Namespace("tf.config.experimental", **_DEVICES, set_memory_growth=ignore),
    run_functions_eagerly=ignore,
)
TEST = Namespace(
    "tf.test", gpu_device_name=_no_name, is_built_with_cuda=_no, is_built_with_gpu_support=_no, is_gpu_available=_no
)
