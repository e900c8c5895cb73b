"""Text format: accepts what protobuf's parser accepts, and reports the position of errors."""

from __future__ import annotations

import math

import pytest

from tfrkit.errors import SchemaError
from tfrkit.features.text_proto import TextMessage, Word, parse_text, quote_text


def test_parse_text_all_kinds_of_values() -> None:
    message = parse_text(
        """
        # a comment
        name: "a" 'b\\n\\101\\x42\\u00e9'   # neighbours are one string
        size: 3, fraction: 0.5; big: -1e3 hex: 0x1F octal: 010 plain: 1.5f
        type: INT flag: true
        low: -inf nothing: nan
        list: [1, 2, 3] none: []
        shape { dim { size: 1 } dim < size: 2 > }
        colon: { a: 1 }
        messages: [{ a: 1 }, < a: 2 >]
        [some.extension] { b: 2 }
        """
    )
    assert message.get_text("name") == "ab\nABé"
    assert message.fields["size"] == [3]
    assert message.get_number("fraction") == 0.5
    assert [message.get_number(key) for key in ("big", "hex", "octal", "plain")] == [-1000.0, 31, 8, 1.5]
    assert message.get_word("type") == "INT"
    assert message.fields["flag"] == [Word("true")]
    assert message.get_number("low") == -math.inf
    assert math.isnan(message.get_number("nothing") or 0)
    assert message.fields["list"] == [1, 2, 3]
    assert message.fields["none"] == []
    shape = message.get_message("shape")
    assert shape is not None
    assert [dim.get_number("size") for dim in shape.get_messages("dim")] == [1, 2]
    assert [part.get_number("a") for part in message.get_messages("messages")] == [1, 2]
    assert message.get_messages("[some.extension]")[0].get_number("b") == 2
    assert message.get_message("absent") is None
    assert message.get_text("absent") is None


def test_parse_text_empty_is_an_empty_message() -> None:
    assert parse_text("") == TextMessage(1)
    assert parse_text(" # only a comment") == TextMessage(1)


def test_parse_text_repeated_messages_merge() -> None:
    shape = parse_text("shape { dim { size: 1 } } shape { dim { size: 2 } }").get_message("shape")
    assert shape is not None
    assert len(shape.get_messages("dim")) == 2


def test_parse_text_bytes_that_are_not_utf8_survive() -> None:
    assert parse_text(r'name: "\377\000"').get_text("name") == "\udcff\0"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("name", r"expected ':' or a message after 'name', got 'end of text' - at line 1, column 5"),
        ("a: 1\nb: }", r"expected a value, got '}' - at line 2, column 4"),
        ("a {\n b: 1", r"expected a field name or '}', got 'end of text' - at line 2, column 6"),
        ("a { b: 1 >", r"expected a field name or '}', got '>' - at line 1, column 10"),
        ("a: 1 }", r"expected a field name, got '}' - at line 1, column 6"),
        ('a: "open', r"expected a value, got '\"' - at line 1, column 4"),
        ('a: "\n"', r"expected a value, got '\"' - at line 1, column 4"),
        ("a: [1 2]", r"expected ',' or '\]', got '2' - at line 1, column 7"),
        ('a: "\\z"', r"expected an escape, got '\\\\z' - at line 1, column 4"),
        ('a: "\\ud800"', r"expected an escape, got '\\\\ud800'"),
        ("a: 1x", r"expected a value, got '1'"),
        ("a { " * 60 + "}" * 60, r"expected at most 50 levels of messages"),
        ("\0", r"expected a field name, got '\\x00' - at line 1, column 1"),
    ],
)
def test_parse_text_wrong_grammar_raises_with_place(text: str, message: str) -> None:
    with pytest.raises(SchemaError, match=message):
        parse_text(text)


@pytest.mark.parametrize(
    ("read", "message"),
    [
        (lambda m: m.get_messages("a"), "field 'a' expected a message, got 1 - at line 1"),
        (lambda m: m.get_text("a"), "field 'a' expected a string, got 1"),
        (lambda m: m.get_word("a"), "field 'a' expected a word, got 1"),
        (lambda m: m.get_number("b"), "field 'b' expected a number, got a message"),
    ],
)
def test_text_message_wrong_type_raises(read: object, message: str) -> None:
    with pytest.raises(SchemaError, match=message):
        read(parse_text("a: 1 b {}"))  # type: ignore[operator]


def test_parse_text_long_input_takes_linear_time() -> None:
    assert len(parse_text("a { b: 1 }\n" * 20_000).get_messages("a")) == 20_000
    assert parse_text("a: " + "9" * 100_000).get_number("a") == math.inf
    with pytest.raises(SchemaError, match="expected a value"):
        parse_text("a: '" + "x" * 1_000_000)


@pytest.mark.parametrize("value", ["", "plain", 'quote " back \\ slash', "tab\tline\nnul\0del\x7f", "héé 中文"])
def test_quote_text_reads_back(value: str) -> None:
    quoted = quote_text(value)
    assert "\n" not in quoted
    assert parse_text(f"a: {quoted}").get_text("a") == value
