"""`FLAGS`: the options of a script, read from its command line by TensorFlow 1's rules.

`--name=value`, `--name value`, one dash as well as two; `--name` and `--noname` for booleans. Reading stops at
`--`; other words may be anywhere. The first use of `FLAGS.name` reads `sys.argv`, as `tf.app.run` does.
"""

from __future__ import annotations

import difflib
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn

_HELP = ("help", "h", "helpshort", "helpfull")
_USAGE = 2


class Error(Exception):
    """Base of all errors about flags."""


class IllegalFlagValueError(Error):
    """A value that does not fit its flag."""


class UnrecognizedFlagError(Error):
    """An undefined flag."""


class DuplicateFlagError(Error):
    """Two flags with the same name."""


class UnparsedFlagAccessError(Error):
    """Never raised here: the command line is read when the first flag is used."""


@dataclass
class Flag:
    """One option: its converter, its default and its current value."""

    name: str
    default: Any
    help: str
    convert: Callable[[Any], Any]
    boolean: bool = False
    multiple: bool = False
    is_required: bool = False
    short_name: str | None = None
    value: Any = None
    present: int = 0
    checks: list[tuple[Callable[[Any], bool], str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.default = self.value = self._read_default(self.default)

    def _read_default(self, default: Any) -> Any:
        if default is None:
            return None
        if self.multiple:
            return [self.read(one) for one in (default if isinstance(default, (list, tuple)) else [default])]
        return self.read(default)

    def read(self, text: Any) -> Any:
        """Convert a text to the flag's value."""
        try:
            return self.convert(text)
        except (TypeError, ValueError, OverflowError) as error:
            raise IllegalFlagValueError(f"flag --{self.name} {error}") from None

    def parse(self, text: str) -> None:
        """Set the value from the command line. A flag that may be repeated collects its values."""
        value = self.read(text)
        if self.multiple:
            value = [*self.value, value] if self.present else [value]
        self.value = value
        self.present += 1

    def check(self) -> None:
        """Raise if a required value is missing, or if one of the script's own checks fails."""
        if self.is_required and self.value is None:
            raise IllegalFlagValueError(f"flag --{self.name} expected a value, got none")
        for is_fine, message in self.checks:
            if not is_fine(self.value):
                raise IllegalFlagValueError(f"flag --{self.name}={self.value}: {message}")


class FlagValues:
    """All flags of a script; each is an attribute."""

    def __init__(self) -> None:
        self.__dict__["_flags"] = {}
        self.__dict__["_is_parsed"] = False

    def add(self, flag: Flag) -> None:
        """Define a flag. An identical definition is ignored, such as when a notebook cell runs again."""
        old = self._flags.get(flag.name)
        if old is not None and (old.default, old.help) != (flag.default, flag.help):
            raise DuplicateFlagError(f"flag {flag.name!r} is defined twice, with different defaults or help texts")
        if old is None:
            self._flags[flag.name] = flag

    def __call__(self, argv: Sequence[str], known_only: bool = False) -> list[str]:
        """Read a command line that starts with the program; return the program and the words that are not flags.

        With `known_only`, undefined flags are returned; otherwise they raise.
        """
        program, *words = argv
        rest, unknown = self._read_words(words, known_only)
        if unknown:
            raise UnrecognizedFlagError(f"unknown flag --{unknown[0]}{self._suggest(unknown[0])}")
        for flag in self._flags.values():
            flag.check()
        self.__dict__["_is_parsed"] = True
        return [program, *rest]

    def _read_words(self, words: Sequence[str], known_only: bool) -> tuple[list[str], list[str]]:
        left = iter(words)
        rest: list[str] = []
        unknown: list[str] = []
        for word in left:
            name, equals, value = word[2 if word.startswith("--") else 1 :].partition("=")
            if word == "--":
                rest += [word] if known_only else []
                break
            if not word.startswith("-") or not name:
                rest.append(word)
                continue
            flag, is_no = self._find(name)
            if flag is None:
                if known_only:
                    rest.append(word)
                else:
                    unknown.append(name)
            elif is_no and equals:
                raise IllegalFlagValueError(f"flag --{name} expected no value, got {value!r}")
            elif flag.boolean and not equals:
                flag.parse("false" if is_no else "true")
            else:
                flag.parse(value if equals else self._take_value(left, name))
        return [*rest, *left], unknown

    def _take_value(self, left: Iterator[str], name: str) -> str:
        value = next(left, None)
        if value is None:
            raise Error(f"flag --{name} expected a value, got none")
        return value

    def _find(self, name: str) -> tuple[Flag | None, bool]:
        """Find a flag by its name, and report whether the name negates it (`--noname`)."""
        by_short = {flag.short_name: flag for flag in self._flags.values() if flag.short_name}
        found = self._flags.get(name) or by_short.get(name)
        if found is not None or not name.startswith("no"):
            return found, False
        denied = self._flags.get(name[2:])
        return (denied, True) if denied is not None and denied.boolean else (None, False)

    def _suggest(self, name: str) -> str:
        close = difflib.get_close_matches(name, self._flags, 1)
        return f", closest is --{close[0]}" if close else ""

    def is_parsed(self) -> bool:
        """Whether a command line has been read."""
        return bool(self._is_parsed)

    def mark_as_parsed(self) -> None:
        """Keep the current values: no command line will be read."""
        self.__dict__["_is_parsed"] = True

    def unparse_flags(self) -> None:
        """Read the command line again at the next use."""
        self.__dict__["_is_parsed"] = False

    def flag_values_dict(self) -> dict[str, Any]:
        """Return every flag's value by name."""
        return {name: flag.value for name, flag in self._flags.items()}

    def set_default(self, name: str, value: Any) -> None:
        """Change the default; the value changes too, unless the command line gave one."""
        flag = self[name]
        flag.default = flag._read_default(value)
        if not flag.present:
            flag.value = flag.default

    def get_help(self) -> str:
        """Return the help text of all flags with their defaults."""
        return "\n".join(_describe(self._flags[name]) for name in sorted(self._flags))

    def _parse_flags(self, args: Sequence[str] | None = None) -> list[str]:
        """Read the command line: the method that scripts of TensorFlow 1.4 and earlier call."""
        words = sys.argv[1:] if args is None else list(args)
        return parse_or_exit(self, [sys.argv[0] if sys.argv else "", *words])[1:]

    def __getattr__(self, name: str) -> Any:
        if name == "__flags":
            return self._flags
        if name not in self._flags:
            if name.startswith("__"):
                raise AttributeError(name)
            raise AttributeError(f"flag {name!r} is not defined{self._suggest(name)}")
        if not self._is_parsed:
            parse_or_exit(self, sys.argv or [""])
        return self._flags[name].value

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in self._flags:
            raise AttributeError(f"flag {name!r} is not defined{self._suggest(name)}")
        self._flags[name].value = value

    def __getitem__(self, name: str) -> Flag:
        found: Flag = self._flags[name]
        return found

    def __contains__(self, name: object) -> bool:
        return name in self._flags

    def __iter__(self) -> Iterator[str]:
        return iter(self._flags)

    def __len__(self) -> int:
        return len(self._flags)

    def __dir__(self) -> list[str]:
        return sorted(self._flags)


def parse_or_exit(flags: FlagValues, argv: Sequence[str]) -> list[str]:
    """Read a command line as `tf.app.run` does: exit on --help and wrong values, return unknown flags and words."""
    program = os.path.basename(argv[0]) or "script"
    wanted = [word.lstrip("-") for word in argv[1:] if word.startswith("-")]
    if any(word in _HELP and word not in flags for word in wanted):
        _print_help(flags, program)
    try:
        rest = flags(argv, known_only=True)
    except Error as error:
        print(f"{program}: {error}\n  list the flags: {program} --help", file=sys.stderr)
        raise SystemExit(_USAGE) from None
    for word in rest[1:]:
        name = word.lstrip("-").partition("=")[0]
        if word.startswith("-") and flags._suggest(name):
            print(f"{program}: note: unknown flag --{name}, not used{flags._suggest(name)}", file=sys.stderr)
    return rest


def _print_help(flags: FlagValues, program: str) -> NoReturn:
    about = (getattr(sys.modules.get("__main__"), "__doc__", None) or "").strip()
    print("\n\n".join(part for part in (about, f"flags of {program}:", flags.get_help()) if part))
    raise SystemExit(0)


def _describe(flag: Flag) -> str:
    name = f"--[no]{flag.name}" if flag.boolean else f"--{flag.name}"
    repeated = "; may be given several times" if flag.multiple else ""
    required = "required" if flag.is_required else f"default: {flag.default!r}"
    return f"  {name}: {flag.help or ''}\n    ({required}{repeated})"
