"""Convert DuckDB's errors to `QueryError`: what is wrong, at which character, and which column was probably meant."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from tfrkit.errors import QueryError
from tfrkit.features.schema import PARTS, find_nearest_name, show_name

_PLAIN_NAME = re.compile(r"[a-z_][a-z0-9_]*", re.IGNORECASE)
_PATH = re.compile(r"[\w/.-]+")
_MAX_SHOWN_TEXT = 100
_MAX_LISTED = 12


def quote_name(name: str) -> str:
    """Quote the name of a column or table for a query, if necessary.

    Example:
        >>> quote_name("label"), quote_name("image/height")
        ('label', '"image/height"')
    """
    return name if _PLAIN_NAME.fullmatch(name) else '"' + name.replace('"', '""') + '"'


class SharedName(NamedTuple):
    """A name that SQL does not tell apart from others: the features it may refer to, and the column of each."""

    name: str
    features: Sequence[str]
    columns: Sequence[str]


class QueryPart(NamedTuple):
    """A part of a query that the user wrote: its start in the query in bytes, its text, and its name in messages."""

    start: int
    text: str
    name: str


def point_at(text: str, place: int | None, name: str = "the query") -> str:
    """Return a clause such as `` - at character 8 of the query``. `place` is a byte offset in the text."""
    if place is None or not 0 <= place <= len(text.encode()):
        return ""
    return f" - at character {_to_character(text, place) + 1} of {name}"


def read_facts(error: Exception) -> dict[str, Any]:
    """Read the fields that DuckDB reports about an error with `errors_as_json`; at least exception_message.

    The JSON is part of the exception's text: DuckDB's Python exceptions have no attributes.
    """
    message = str(error)
    start = message.find("{")
    if start >= 0:
        try:
            facts = json.loads(message[start:])
        except ValueError:
            facts = None
        if isinstance(facts, dict) and "exception_message" in facts:
            return facts
    # Not JSON, but text such as "Binder Error: ...".
    _, colon, rest = message.partition("Error: ")
    return {"exception_message": rest if colon else message}


def to_query_error(
    facts: Mapping[str, Any],
    text: str,
    *,
    columns: Sequence[tuple[str, str]] = (),
    hint: str | None = None,
    parts: Sequence[QueryPart] = (),
    shared: SharedName | None = None,
) -> QueryError:
    """Create the error that the user sees. `columns` are those of the tables, each with its form in a query.

    With `parts`, the user wrote only these parts of the query: positions are reported relative to the part. `shared` is
    the name to which the error is due.
    """
    place = int(facts["position"]) if str(facts.get("position", "")).isdigit() else None
    name = "the query"
    if parts:
        place, text, name = _find_part(parts, place)
    where = point_at(text, place, name)
    if shared is not None:
        error = refuse_shared(shared, where)
    elif facts.get("error_subtype") == "COLUMN_NOT_FOUND" and facts.get("name"):
        error = _miss_column(str(facts["name"]), _read_path(text, place), where, columns)
    else:
        what = str(facts.get("exception_message") or facts.get("error_message") or "the query failed")
        error = QueryError(_first_clause(what) + where, hint=hint or _draw(text, place))
    error.position = None if place is None else _to_character(text, place)
    return error


def refuse_shared(shared: SharedName, where: str = "") -> QueryError:
    """Return the error for a name that several features share."""
    got = " and ".join(map(show_name, shared.features))
    pairs = zip(shared.columns, shared.features, strict=True)
    return QueryError(
        f"column {show_name(shared.name)} expected one feature, got {got}, which SQL does not tell apart{where}",
        hint="write " + ", ".join(f"{column} for {show_name(feature)}" for column, feature in pairs),
    )


def _find_part(parts: Sequence[QueryPart], place: int | None) -> tuple[int | None, str, str]:
    """Return the offset in the part that contains `place`, its text and name. The bracket after a part is its end."""
    for part in parts:
        nbytes = len(part.text.encode())
        if place is not None and 0 <= place - part.start <= nbytes + 1:
            return min(place - part.start, nbytes), part.text, part.name
    return None, "", "the query"


def _miss_column(name: str, path: str, where: str, columns: Sequence[tuple[str, str]]) -> QueryError:
    written: dict[str, str] = {}
    for column, form in columns:
        written.setdefault(column, form)
    # image/height without quotes is a division, for which DuckDB reports that column image is missing.
    part, _, plain = name.partition("/")
    if part in PARTS and plain in written:
        path = plain  # "context/x" is the column of a CSV file
    nearest = path if path in written else find_nearest_name(name, written)
    meant = "" if nearest is None else f", did you mean {written[nearest]}"
    shown = [form for _, form in columns[:_MAX_LISTED]]
    more = f", … {len(columns):,} in all" if len(columns) > _MAX_LISTED else ""
    listed = f"columns: {', '.join(shown)}{more}" if shown else "these tables have no columns"
    error = QueryError(f"no column {quote_name(name)}{meant}{where}", hint=listed)
    error.missing_column = name
    return error


def _first_clause(message: str) -> str:
    """Return the first line of a message, in the style of our own messages."""
    line = message.strip().split("\n")[0].rstrip(".! ")
    line = line.replace("STRING_LITERAL", "VARCHAR").replace("INTEGER_LITERAL", "INTEGER")
    is_word = len(line) > 1 and line[0].isupper() and not line[1].isupper()
    return line[0].lower() + line[1:] if is_word else line


def _draw(text: str, place: int | None) -> str | None:
    """Return the line of the query that contains `place`, with a caret below it."""
    if place is None or not 0 <= place <= len(text.encode()):
        return None
    character = _to_character(text, place)
    start = text.rfind("\n", 0, character) + 1
    line = text[start:].split("\n")[0].replace("\t", " ")
    column = character - start
    cut = max(0, column - _MAX_SHOWN_TEXT // 2) if len(line) > _MAX_SHOWN_TEXT else 0
    shown = line[cut : cut + _MAX_SHOWN_TEXT]
    return f"{shown}\n  {' ' * (column - cut)}^"


def _read_path(text: str, place: int | None) -> str:
    """Read the name at a byte offset of the query, including slashes, dots and hyphens."""
    if place is None:
        return ""
    found = _PATH.match(text.encode()[place:].decode(errors="ignore"))
    return found[0] if found else ""


def _to_character(text: str, place: int) -> int:
    return len(text.encode()[:place].decode(errors="ignore"))
