"""`tf.app.flags` and `tf.app.run`: how scripts of TensorFlow 1 define their options and start."""

from __future__ import annotations

import csv
import functools
import sys
from collections.abc import Callable, Iterable
from typing import Any, NoReturn

from tfrkit.compat import flag_values
from tfrkit.compat.flag_values import Flag, FlagValues, parse_or_exit
from tfrkit.compat.namespace import Namespace

FLAGS = FlagValues()

_TRUE, _FALSE = ("true", "t", "1"), ("false", "f", "0")
# The names of these arguments in TensorFlow 1.
_OLD_NAMES = {"flag_name": "name", "default_value": "default", "docstring": "help"}


class FlagHolder:
    """The result of a DEFINE function, which gives the flag's value without its name in quotes."""

    def __init__(self, flags: FlagValues, name: str) -> None:
        self._flags = flags
        self.name = name

    @property
    def value(self) -> Any:
        return getattr(self._flags, self.name)

    @property
    def default(self) -> Any:
        return self._flags[self.name].default

    @property
    def present(self) -> bool:
        return bool(self._flags[self.name].present)


def _read_text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"expected text, got {value!r}")
    return value


def _read_boolean(value: Any) -> bool:
    text = value.lower() if isinstance(value, str) else str(value).lower()
    if text not in _TRUE + _FALSE:
        raise ValueError(f"expected true or false, got {value!r}")
    return text in _TRUE


def _read_integer(value: Any) -> int:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if not isinstance(value, str):
        raise TypeError(f"expected an integer, got {value!r}")
    base = {"0x": 16, "0o": 8}.get(value[:2], 10)
    try:
        return int(value, base)
    except ValueError:
        raise ValueError(f"expected an integer, got {value!r}") from None


def _read_float(value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        raise ValueError(f"expected a number, got {value!r}") from None


def _read_list(value: Any) -> list[str]:
    if isinstance(value, (list, tuple)):
        return list(value)
    return [part.strip() for part in next(csv.reader([value], strict=True))] if value else []


def _within(read: Callable[[Any], Any], lower: Any, upper: Any) -> Callable[[Any], Any]:
    def convert(text: Any) -> Any:
        value = read(text)
        if (lower is not None and value < lower) or (upper is not None and value > upper):
            raise ValueError(f"expected a number from {_bound(lower)} to {_bound(upper)}, got {value}")
        return value

    return convert


def _bound(value: Any) -> str:
    return "any" if value is None else str(value)


def _one_of(choices: Iterable[str], case_sensitive: bool = True) -> Callable[[Any], str]:
    known = list(choices)
    by_key = {choice if case_sensitive else choice.lower(): choice for choice in known}

    def convert(text: Any) -> str:
        key = text if case_sensitive or not isinstance(text, str) else text.lower()
        if key not in by_key:
            raise ValueError(f"expected one of {', '.join(known)}, got {text!r}")
        return by_key[key]

    return convert


def _definer(make: Callable[..., Callable[[Any], Any]], **kind: Any) -> Callable[..., FlagHolder]:
    """Make a DEFINE function. `make` gets its further arguments, such as bounds, and returns the converter."""

    def define(
        name: str,
        default: Any,
        *more: Any,
        flag_values: FlagValues = FLAGS,
        required: bool = False,
        short_name: str | None = None,
        **options: Any,
    ) -> FlagHolder:
        """Define a command-line flag: name, default, help."""
        # The help is last: the choices of an enum come before it.
        arguments = [*more, options.pop("help")] if "help" in options else list(more) or [""]
        convert = make(*arguments[:-1], **options)
        flag = Flag(name, default, arguments[-1] or "", convert, is_required=required, short_name=short_name, **kind)
        flag_values.add(flag)
        return FlagHolder(flag_values, name)

    @functools.wraps(define)
    def call(*values: Any, **options: Any) -> FlagHolder:
        return define(*values, **{_OLD_NAMES.get(name, name): value for name, value in options.items()})

    return call


def _always(read: Callable[[Any], Any]) -> Callable[..., Callable[[Any], Any]]:
    return lambda: read


def _bounded(read: Callable[[Any], Any]) -> Callable[..., Callable[[Any], Any]]:
    return lambda lower_bound=None, upper_bound=None: _within(read, lower_bound, upper_bound)


def _choice(enum_values: Iterable[str], case_sensitive: bool = True) -> Callable[[Any], str]:
    return _one_of(enum_values, case_sensitive)


def mark_flag_as_required(flag_name: str, flag_values: FlagValues = FLAGS) -> None:
    """Refuse a command line that leaves the flag without a value."""
    flag_values[flag_name].is_required = True


def mark_flags_as_required(flag_names: Iterable[str], flag_values: FlagValues = FLAGS) -> None:
    """Call `mark_flag_as_required` for several flags."""
    for name in flag_names:
        mark_flag_as_required(name, flag_values)


def register_validator(
    flag_name: str,
    checker: Callable[[Any], bool],
    message: str = "flag validation failed",
    flag_values: FlagValues = FLAGS,
) -> None:
    """Refuse a command line whose value `checker` rejects."""
    flag_values[flag_name].checks.append((checker, message))


def run(main: Callable[[list[str]], Any] | None = None, argv: list[str] | None = None) -> NoReturn:
    """Read the flags, call `main` with the remaining words, and exit with its return value."""
    rest = parse_or_exit(FLAGS, sys.argv if argv is None else argv)
    function = main or getattr(sys.modules["__main__"], "main", None)
    if function is None:
        raise ValueError("tf.app.run expected a function main in the script, got none\n  name it: tf.app.run(main=...)")
    sys.exit(function(rest))


FLAGS_NAMES = {
    "FLAGS": FLAGS,
    "Flag": Flag,
    "FlagHolder": FlagHolder,
    "FlagValues": FlagValues,
    "Error": flag_values.Error,
    "DuplicateFlagError": flag_values.DuplicateFlagError,
    "IllegalFlagValueError": flag_values.IllegalFlagValueError,
    "UnparsedFlagAccessError": flag_values.UnparsedFlagAccessError,
    "UnrecognizedFlagError": flag_values.UnrecognizedFlagError,
    "DEFINE_bool": _definer(_always(_read_boolean), boolean=True),
    "DEFINE_boolean": _definer(_always(_read_boolean), boolean=True),
    "DEFINE_enum": _definer(_choice),
    "DEFINE_float": _definer(_bounded(_read_float)),
    "DEFINE_integer": _definer(_bounded(_read_integer)),
    "DEFINE_list": _definer(_always(_read_list)),
    "DEFINE_multi_enum": _definer(_choice, multiple=True),
    "DEFINE_multi_float": _definer(_bounded(_read_float), multiple=True),
    "DEFINE_multi_integer": _definer(_bounded(_read_integer), multiple=True),
    "DEFINE_multi_string": _definer(_always(_read_text), multiple=True),
    "DEFINE_string": _definer(_always(_read_text)),
    "mark_flag_as_required": mark_flag_as_required,
    "mark_flags_as_required": mark_flags_as_required,
    "register_validator": register_validator,
}
FLAGS_SPACE = Namespace("tf.flags", **FLAGS_NAMES)
APP_SPACE = Namespace("tf.app", flags=Namespace("tf.app.flags", **FLAGS_NAMES), run=run)
