"""Parse protobuf text format without a message definition.

A message becomes a `TextMessage`: its fields by name, each a list of values in file order. Strings are bytes, numbers
are int or float, and words (enum names, true, false) are `Word`. The caller checks types, because the format does not
show whether the 3 in ``size: 3`` is an int or a float.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

from tfrkit.errors import SchemaError

MAX_TEXT = 64 << 20
_MAX_DEPTH = 50

_TOKEN = re.compile(
    r"""
    (?P<blank>[ \t\r\n\f\v]+|\#[^\n]*)
  | (?P<number>-?(?:0[xX][0-9a-fA-F]+|(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?[fF]?))(?![A-Za-z0-9_.])
  | (?P<word>-?[A-Za-z_][A-Za-z0-9_]*)
  | (?P<string>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')
  | (?P<extension>\[[A-Za-z_][A-Za-z0-9_./-]*\])
  | (?P<sign>[{}<>:;,\[\]])
    """,
    re.VERBOSE | re.DOTALL,
)
_ESCAPE = re.compile(
    rb"\\(?:([abfnrtv?\\'\"])|([0-7]{1,3})|[xX]([0-9a-fA-F]{1,2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|(.))", re.DOTALL
)
_SIMPLE_ESCAPES = dict(zip(b"abfnrtv?\\'\"", b"\a\b\f\n\r\t\v?\\'\"", strict=True))


class Word(str):
    """A bare word: an enum name, true or false."""

    __slots__ = ()


@dataclass
class TextMessage:
    """One message, which starts at line `line`."""

    line: int = 1
    fields: dict[str, list[TextValue]] = field(default_factory=dict)

    def get_messages(self, name: str) -> list[TextMessage]:
        """Return all sub-messages with this name; raise SchemaError if a value is not a message."""
        messages = []
        for value in self.fields.get(name, []):
            if not isinstance(value, TextMessage):
                raise SchemaError(f"field {name!r} expected a message, got {value!r:.64} - at line {self.line}")
            messages.append(value)
        return messages

    def get_message(self, name: str) -> TextMessage | None:
        """Return the sub-message with this name, or None; several are merged, as in protobuf."""
        messages = self.get_messages(name)
        if len(messages) < 2:
            return messages[0] if messages else None
        merged = TextMessage(messages[0].line)
        for message in messages:
            for key, values in message.fields.items():
                merged.fields.setdefault(key, []).extend(values)
        return merged

    def get_texts(self, name: str) -> list[str]:
        """Return all strings with this name."""
        texts = []
        for value in self.fields.get(name, []):
            if not isinstance(value, bytes):
                raise SchemaError(f"field {name!r} expected a string, got {_show(value)} - at line {self.line}")
            texts.append(value.decode("utf-8", "surrogateescape"))
        return texts

    def get_text(self, name: str) -> str | None:
        """Return the string with this name, or None; if there are several, the last one."""
        texts = self.get_texts(name)
        return texts[-1] if texts else None

    def get_number(self, name: str) -> int | float | None:
        """Return the number with this name, or None; if there are several, the last one."""
        values = self.fields.get(name, [])
        for value in values:
            if not isinstance(value, (int, float)):
                raise SchemaError(f"field {name!r} expected a number, got {_show(value)} - at line {self.line}")
        last = values[-1] if values else None
        return last if isinstance(last, (int, float)) else None

    def get_word(self, name: str) -> str | None:
        """Return the enum name or boolean with this name, or None; if there are several, the last one."""
        values = self.fields.get(name, [])
        for value in values:
            if not isinstance(value, Word):
                raise SchemaError(f"field {name!r} expected a word, got {_show(value)} - at line {self.line}")
        return str(values[-1]) if values else None


TextValue = TextMessage | Word | bytes | int | float


def parse_text(text: str) -> TextMessage:
    """Parse a message in text format.

    Raises `SchemaError` with line and column for a syntax error.

    Example:
        >>> parse_text('name: "a" shape { dim { size: 3 } }').get_text("name")
        'a'
    """
    if len(text) > MAX_TEXT:
        raise SchemaError(f"text format expected at most {MAX_TEXT:,} characters, got {len(text):,}")
    return _Parser(text).parse()


def quote_text(value: str, mark: Literal['"', "'"] = '"') -> str:
    """Quote and escape a string for text format, on one line."""
    parts = []
    for char in value:
        if char in (mark, "\\"):
            parts.append("\\" + char)
        elif char == "\n":
            parts.append("\\n")
        elif char < " " or char == "\x7f":
            parts.append(f"\\{ord(char):03o}")
        elif "\udc80" <= char <= "\udcff":  # a byte that is not UTF-8
            parts.append(f"\\{ord(char) - 0xDC00:03o}")
        else:
            parts.append(char)
    return f"{mark}{''.join(parts)}{mark}"


@dataclass(frozen=True)
class _Token:
    kind: str
    text: str
    offset: int


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = self._scan()
        self._next = next(self._tokens)
        # Lines are counted incrementally, so that many messages do not recount the whole text.
        self._counted_offset = 0
        self._counted_lines = 1

    def parse(self) -> TextMessage:
        message = self._parse_fields(TextMessage(1), closing="", depth=0)
        if self._next.kind != "end":
            raise self._error(f"expected a field name, got {self._next.text!r:.40}")
        return message

    def _scan(self) -> Iterator[_Token]:
        offset = 0
        while offset < len(self._text):
            match = _TOKEN.match(self._text, offset)
            if match is None:
                yield _Token("junk", self._text[offset], offset)
                return
            if match.lastgroup != "blank":
                yield _Token(match.lastgroup or "", match.group(), offset)
            offset = match.end()
        while True:
            yield _Token("end", "end of text", len(self._text))

    def _parse_fields(self, message: TextMessage, *, closing: str, depth: int) -> TextMessage:
        if depth > _MAX_DEPTH:
            raise self._error(f"expected at most {_MAX_DEPTH} levels of messages")
        while self._next.kind in ("word", "extension"):
            name = self._take().text
            values = message.fields.setdefault(name, [])
            has_colon = self._accept(":")
            if self._next.text in ("{", "<") and self._next.kind == "sign":
                values.append(self._parse_message(depth))
            elif not has_colon:
                raise self._error(f"expected ':' or a message after {name!r:.40}, got {self._next.text!r:.40}")
            elif self._accept("["):
                self._parse_list(values, depth)
            else:
                values.append(self._parse_scalar())
            if not self._accept(","):
                self._accept(";")
        if closing and not self._accept(closing):
            raise self._error(f"expected a field name or {closing!r}, got {self._next.text!r:.40}")
        return message

    def _parse_message(self, depth: int) -> TextMessage:
        closing = "}" if self._next.text == "{" else ">"
        line = self._find_line(self._take().offset)
        return self._parse_fields(TextMessage(line), closing=closing, depth=depth + 1)

    def _parse_list(self, values: list[TextValue], depth: int) -> None:
        if self._accept("]"):
            return
        while True:
            is_message = self._next.kind == "sign" and self._next.text in ("{", "<")
            values.append(self._parse_message(depth) if is_message else self._parse_scalar())
            if self._accept("]"):
                return
            if not self._accept(","):
                raise self._error(f"expected ',' or ']', got {self._next.text!r:.40}")

    def _parse_scalar(self) -> TextValue:
        token = self._next
        if token.kind == "string":
            parts = []
            while self._next.kind == "string":  # adjacent strings are concatenated, as in C
                parts.append(self._unescape(self._take()))
            return b"".join(parts)
        if token.kind == "number":
            return _read_number(self._take().text)
        if token.kind == "word":
            word = self._take().text
            if word.lower() in ("inf", "-inf", "infinity", "-infinity", "nan", "-nan"):
                return float(word)
            return Word(word)
        raise self._error(f"expected a value, got {token.text!r:.40}")

    def _unescape(self, token: _Token) -> bytes:
        raw = token.text[1:-1].encode("utf-8", "surrogateescape")

        def replace(match: re.Match[bytes]) -> bytes:
            simple, octal, hexadecimal, short, long, junk = match.groups()
            if simple is not None:
                return bytes([_SIMPLE_ESCAPES[simple[0]]])
            if octal is not None:
                return bytes([int(octal, 8) & 0xFF])
            if hexadecimal is not None:
                return bytes([int(hexadecimal, 16)])
            code = int(short or long or b"-1", 16)
            if junk is not None or code > 0x10FFFF or 0xD800 <= code < 0xE000:
                raise self._error(f"expected an escape, got {match.group().decode('utf-8', 'replace')!r}", token)
            return chr(code).encode()

        return _ESCAPE.sub(replace, raw)

    def _take(self) -> _Token:
        token, self._next = self._next, next(self._tokens, _Token("end", "end of text", len(self._text)))
        return token

    def _accept(self, sign: str) -> bool:
        if self._next.kind == "sign" and self._next.text == sign:
            self._take()
            return True
        return False

    def _find_line(self, offset: int) -> int:
        self._counted_lines += self._text.count("\n", self._counted_offset, offset)
        self._counted_offset = offset
        return self._counted_lines

    def _error(self, what: str, token: _Token | None = None) -> SchemaError:
        offset = (token or self._next).offset
        line = self._text.count("\n", 0, offset) + 1
        column = offset - self._text.rfind("\n", 0, offset)
        return SchemaError(f"text format {what} - at line {line}, column {column}")


def _read_number(text: str) -> int | float:
    if text.lower().startswith(("0x", "-0x")):
        return int(text, 16)
    digits = text.lstrip("-")
    if digits.isdigit():
        if len(digits) > 20:  # more than an integer field can hold, and parsing a million digits is slow
            return float("-inf" if text.startswith("-") else "inf")
        return (
            int(text, 8) if len(digits) > 1 and digits.startswith("0") and set(digits) <= set("01234567") else int(text)
        )
    return float(text.rstrip("fF"))


def _show(value: TextValue) -> str:
    return "a message" if isinstance(value, TextMessage) else f"{value!r:.64}"
