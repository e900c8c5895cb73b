"""Find the tables and column names of a query, with DuckDB's parser.

DuckDB requests all columns of an Arrow stream, so the columns to decode are chosen here, before the query runs. A
query refers to a column by its name, or to all columns at once: by a `*` whose columns are used, by a whole row, or by
a position. Names are collected in `names`; any of the others sets `wants_all`. Both may select too many columns
(because an alias is also a name), never too few.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from tfrkit.errors import QueryError
from tfrkit.features.schema import PARTS
from tfrkit.ops.query.errors import point_at, to_query_error
from tfrkit.ops.query.places import NUMBER_COLUMN

# Tables are TFRecord files. These functions are allowed too, because they make rows only from their arguments.
_TABLE_FUNCTIONS = {"range", "generate_series", "unnest", "repeat", "repeat_row", "generate_subscripts"}
_KNOWN_TABLES = {"BASE_TABLE", "JOIN", "SUBQUERY", "TABLE_FUNCTION", "EXPRESSION_LIST", "EMPTY", "EMPTY_FROM"}
_KEEPS_ROWS = {"ORDER_MODIFIER", "LIMIT_MODIFIER", "LIMIT_PERCENT_MODIFIER"}
_UPPER = str.maketrans("ABCDEFGHIJKLMNOPQRSTUVWXYZ", "abcdefghijklmnopqrstuvwxyz")
_NOWHERE = 1 << 62  # larger locations are those of nodes that the parser added

Node = dict[str, Any]


def fold_name(name: str) -> str:
    """Convert a name to the form in which DuckDB compares it: A to Z in lower case, other characters unchanged."""
    return name.translate(_UPPER)


@dataclass(frozen=True)
class ParsedQuery:
    """One SELECT. `tables` maps the names in its FROM clauses that no WITH defines to their byte offsets in the text.

    `names` are folded; `loose_names` are those that something else than a column of one table may have, too;
    `whole_structs` holds "context" and "feature_lists" if the query uses the whole struct.
    """

    text: str
    tables: dict[str, int]
    names: frozenset[str]
    wants_all: bool
    whole_structs: frozenset[str]
    statement: Node = field(repr=False)
    loose_names: frozenset[str] = frozenset()

    def names_column(self, name: str) -> bool:
        """Does the query contain this name?"""
        return fold_name(name) in self.names


def parse_sql(connection: Any, text: str) -> Node:
    """Return the syntax tree of DuckDB's parser, or its error."""
    tree: Node = json.loads(connection.execute("select json_serialize_sql(?::varchar)", [text]).fetchall()[0][0])
    return tree


def print_sql(connection: Any, tree: Node) -> str:
    """Return the query of a syntax tree."""
    text: str = connection.execute("select json_deserialize_sql(?::json)", [json.dumps(tree)]).fetchall()[0][0]
    return text


def parse_query(connection: Any, text: str) -> ParsedQuery:
    """Parse a query. Raises `QueryError` if it is not a single SELECT, or if a table is not a file."""
    content = parse_sql(connection, text)
    if content["error"]:
        if "position" in content:
            raise to_query_error(content, text)
        raise QueryError("expected a SELECT, got another statement", hint="see: tfr sql --help")
    statements = content["statements"]
    if len(statements) != 1:
        got = f"{len(statements)} of them" if statements else "nothing"
        raise QueryError(f"expected one SELECT, got {got}", hint="see: tfr sql --help")
    gathered = _Gathered(text)
    gathered.read_node(statements[0]["node"], frozenset(), is_shown=True)
    return ParsedQuery(
        text,
        gathered.tables,
        frozenset(gathered.names),
        gathered.wants_all or bool(gathered.single_names & gathered.aliases),
        frozenset(gathered.whole_structs),
        content,
        frozenset(gathered.single_names if len(gathered.tables) > 1 else gathered.single_names & gathered.aliases),
    )


def find_copied_table(parsed: ParsedQuery) -> str | None:
    """Return the table of a `select * from 'x'` that only filters, orders or limits its records; otherwise None."""
    node = parsed.statement["statements"][0]["node"]
    if node["type"] != "SELECT_NODE" or len(node["select_list"]) != 1:
        return None
    star, table = node["select_list"][0], node["from_table"]
    if not _is_plain_star(star) or any(star.get(key) for key in ("exclude_list", "replace_list", "rename_list")):
        return None
    if star.get("qualified_exclude_list") or table["type"] != "BASE_TABLE" or table["column_name_alias"]:
        return None
    is_grouped = node["group_expressions"] or node["having"] or node["aggregate_handling"] != "STANDARD_HANDLING"
    if is_grouped or any(modifier["type"] not in _KEEPS_ROWS for modifier in node["modifiers"]):
        return None
    name: str = table["table_name"]
    return name if name in parsed.tables else None


def is_ordered(parsed: ParsedQuery) -> bool:
    """Does the query have an ORDER BY?"""
    modifiers = parsed.statement["statements"][0]["node"]["modifiers"]
    return any(modifier["type"] == "ORDER_MODIFIER" for modifier in modifiers)


def ask_for_numbers(connection: Any, parsed: ParsedQuery) -> ParsedQuery:
    """Change a query to select the numbers of records instead of their columns.

    REQUIRES: `find_copied_table` returned a table.
    """
    statement = copy.deepcopy(parsed.statement)
    node = statement["statements"][0]["node"]
    table = node["from_table"]
    for modifier in node["modifiers"]:
        for order in modifier.get("orders", ()):
            if order["expression"]["class"] in ("CONSTANT", "STAR"):
                raise QueryError(
                    "records are copied in the order of a column, got an ORDER BY of a number or ALL",
                    hint="name the column: order by label",
                )
    column = {
        "class": "COLUMN_REF",
        "type": "COLUMN_REF",
        "alias": "",
        "column_names": [table["alias"] or table["table_name"], NUMBER_COLUMN],
    }
    node["select_list"] = [column]
    return parse_query(connection, print_sql(connection, statement))


def hide_places(connection: Any, parsed: ParsedQuery, columns: Sequence[str]) -> str:
    """Return the text of a query, with those of these columns that it names excluded from every `*`."""
    named = [column for column in columns if parsed.names_column(column)]
    if not named:
        return parsed.text
    statement = copy.deepcopy(parsed.statement)
    return print_sql(connection, statement) if _exclude(statement, parsed.tables, named) else parsed.text


def _exclude(value: Any, tables: Iterable[str], columns: Sequence[str]) -> bool:
    """Exclude columns from every `*` over `tables`; return whether there was one."""
    if isinstance(value, list):
        return max((_exclude(item, tables, columns) for item in value), default=False)
    if not isinstance(value, dict):
        return False
    is_changed = _exclude(list(value.values()), tables, columns)
    if value.get("type") == "SELECT_NODE" and _are_files(value["from_table"], tables):
        for star in filter(_is_plain_star, value["select_list"]):
            star["exclude_list"] += columns
            is_changed = True
    return is_changed


def _are_files(table: Node, tables: Iterable[str]) -> bool:
    if table["type"] == "JOIN":
        return _are_files(table["left"], tables) and _are_files(table["right"], tables)
    return table["type"] == "BASE_TABLE" and table["table_name"] in tables


class _Gathered:
    """Collects tables and names from a parsed query. `scope` holds the folded names that outer WITH clauses define."""

    def __init__(self, text: str) -> None:
        self._text = text
        self.tables: dict[str, int] = {}
        self.names: set[str] = set()
        self.single_names: set[str] = set()
        self.aliases: set[str] = set()
        self.whole_structs: set[str] = set()
        self.wants_all = False

    def read_node(self, node: Node, scope: frozenset[str], *, is_shown: bool) -> None:
        """Read a query or subquery; `is_shown` if all of its columns matter to the enclosing query.

        They do not in a subquery of FROM: the enclosing query refers to them by name, so a `*` here does not need all.
        """
        scope = self._read_with(node, scope)
        if node["type"] != "SELECT_NODE":
            # UNION and similar operations match columns by position, so all columns of their parts matter.
            if "cte_name" in node:
                scope |= {fold_name(node["cte_name"])}
            self._read_all([value for key, value in node.items() if key != "cte_map"], scope)
            return
        compares_rows = any(modifier["type"] == "DISTINCT_MODIFIER" for modifier in node["modifiers"])
        groups_by_all = node["aggregate_handling"] != "STANDARD_HANDLING"
        for item in node["select_list"]:
            if not _is_plain_star(item):
                self.read(item, scope)
                continue
            self.wants_all |= is_shown or compares_rows or groups_by_all
            self.names.update(_find_texts(item.get(key) for key in _STAR_NAMES))
            self.read(item.get("replace_list"), scope)
        self._read_all([value for key, value in node.items() if key not in ("cte_map", "select_list")], scope)

    def read(self, value: Any, scope: frozenset[str]) -> None:
        """Read any part of a query: an expression, a table, or a list of these."""
        if isinstance(value, list):
            self._read_all(value, scope)
        if not isinstance(value, dict):
            return
        kind, expression = value.get("type"), value.get("class")
        if expression == "COLUMN_REF":
            self._read_column(value["column_names"])
        elif expression in ("STAR", "POSITIONAL_REFERENCE"):
            self.wants_all = True
            self._read_all(value.values(), scope)
        elif expression == "SUBQUERY":
            is_exists = value.get("subquery_type") in ("EXISTS", "NOT_EXISTS")
            self.read_node(value["subquery"]["node"], scope, is_shown=not is_exists)
            self._read_all([inner for key, inner in value.items() if key != "subquery"], scope)
        elif expression is None and "modifiers" in value and "cte_map" in value:
            self.read_node(value, scope, is_shown=True)
        elif expression is None and "sample" in value and "alias" in value and isinstance(kind, str):
            self._read_table(value, kind, scope)
        else:
            self._read_all(value.values(), scope)

    def _read_all(self, values: Iterable[Any], scope: frozenset[str]) -> None:
        for value in values:
            if isinstance(value, (dict, list)):
                self.read(value, scope)

    def _read_with(self, node: Node, scope: frozenset[str]) -> frozenset[str]:
        """Read a WITH clause; return the scope with its names added. Each of its queries sees the names before it."""
        for entry in (node.get("cte_map") or {}).get("map", ()):
            value = entry["value"]
            inner = value.get("query_node") or (value.get("query") or {}).get("node")
            if inner is None:
                self.read(value, scope)
            else:
                is_renamed = bool(value.get("aliases"))
                self.read_node(inner, scope, is_shown=is_renamed)
            scope |= {fold_name(entry["key"])}
            self.aliases.add(fold_name(entry["key"]))
        return scope

    def _read_column(self, path: list[str]) -> None:
        folded = [fold_name(name) for name in path]
        self.names.update(folded)
        if len(folded) == 1:
            self.single_names.update(folded)
        if folded[-1] in PARTS:
            self.whole_structs.add(folded[-1])

    def _read_table(self, table: Node, kind: str, scope: frozenset[str]) -> None:
        if table["alias"]:
            self.aliases.add(fold_name(table["alias"]))
        is_renamed = bool(table.get("column_name_alias")) and kind not in ("TABLE_FUNCTION", "EXPRESSION_LIST")
        # Column aliases apply by position; a table of an unknown kind may use any column.
        self.wants_all |= is_renamed or kind not in _KNOWN_TABLES or table.get("ref_type") == "NATURAL"
        self.names.update(_find_texts(table.get("using_columns")))
        if kind == "BASE_TABLE":
            self._read_base_table(table, scope)
        elif kind == "SUBQUERY":
            self.read_node(table["subquery"]["node"], scope, is_shown=is_renamed)
        elif kind == "TABLE_FUNCTION":
            self._read_table_function(table, scope)
        else:
            self._read_all(table.values(), scope)

    def _read_base_table(self, table: Node, scope: frozenset[str]) -> None:
        name, place = table["table_name"], table["query_location"]
        self.aliases.add(fold_name(name))
        parts = [part for part in (table["catalog_name"], table["schema_name"], name) if part]
        if len(parts) > 1:
            joined = ".".join(parts)
            raise QueryError(
                f"expected the name of a file in quotes, got {joined}{point_at(self._text, place)}",
                hint=f"write: from '{joined}'",
            )
        if fold_name(name) in scope:
            return
        for other in self.tables:
            if other != name and fold_name(other) == fold_name(name):
                raise QueryError(f"two tables whose names differ in case only, {other!r} and {name!r}")
        self.tables.setdefault(name, place if place < _NOWHERE else 0)

    def _read_table_function(self, table: Node, scope: frozenset[str]) -> None:
        function = table["function"]
        name = function.get("function_name", "")
        if fold_name(name) not in _TABLE_FUNCTIONS:
            raise QueryError(
                f"tables are TFRecord files, got the function {name}(){point_at(self._text, table['query_location'])}",
                hint="write: from 'train-*.tfrecord'",
            )
        self._read_all(function.values(), scope)


_STAR_NAMES = ("exclude_list", "qualified_exclude_list", "rename_list", "replace_list")


def _is_plain_star(item: Node) -> bool:
    """Is this a plain `*`, not COLUMNS(...)?"""
    return item["class"] == "STAR" and not item.get("columns") and item.get("expr") is None


def _find_texts(value: Any) -> Iterable[str]:
    """Yield every string in a value, folded: the parser gives names in different forms."""
    if isinstance(value, str):
        yield fold_name(value)
    elif isinstance(value, dict):
        for inner in value.values():
            yield from _find_texts(inner)
    elif value is not None and not isinstance(value, (int, float, bool)):
        for inner in value:
            yield from _find_texts(inner)
