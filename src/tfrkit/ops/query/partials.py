"""Cut a query for the workers of a cluster: what each of them computes over one shard, and what is left to do.

A query over one table with count, sum, min, max and avg is cut into partial aggregates per shard and a query over
these. Any other query gets the rows of the table, filtered by its WHERE if it has only one table. The caller binds both
texts before it uses them: a query that cannot be cut this way, by a rule that is not known here, fails then.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from tfrkit.ops.query.scan import quote_table
from tfrkit.ops.query.text import Node, ParsedQuery, fold_name, parse_sql, print_sql

PARTIALS = "tfrkit_partials"
"""The table of partial results."""

# How partial results of each aggregate are put together: columns of the partial result, and the final expression.
_COUNT = "cast(coalesce(sum({0}), 0) as bigint)"
_FOLDS = {
    "count": (("count",), _COUNT),
    "count_star": (("count_star",), _COUNT),
    "sum": (("sum",), "sum({0})"),
    "min": (("min",), "min({0})"),
    "max": (("max",), "max({0})"),
    "avg": (("sum", "count"), "cast(sum({0}) as double) / sum({1})"),
    "mean": (("sum", "count"), "cast(sum({0}) as double) / sum({1})"),
}
_MERGES = {"count": "sum", "count_star": "sum"}
_PLACE = ("alias", "query_location", "query_location_length")
_NO_TABLE = ("sample", "column_name_alias", "at_clause")


@dataclass(frozen=True)
class CutQuery:
    """The query of each shard, over the table of the same name, and the query over their results.

    `merge` is a query that puts partial results together without changing what `final` returns; None for rows.
    """

    partial: str
    final: str
    merge: str | None = None


def cut_aggregates(
    connection: Any, parsed: ParsedQuery, columns: Collection[str], names: Sequence[str]
) -> CutQuery | None:
    """Cut a query into partial aggregates; None if it has others, or none.

    `columns` are those of its table, `names` those of its result.
    """
    node = _find_plain_select(parsed)
    if node is None:
        return None
    cutter = _Cutter(connection, node, {fold_name(name) for name in columns}, names)
    return cutter.cut(parsed.statement)


def cut_rows(connection: Any, parsed: ParsedQuery, name: str, *, with_filter: bool) -> CutQuery:
    """Let workers return the rows of table `name`, `with_filter` only those of the WHERE clause, if there is one."""
    node = _find_plain_select(parsed) if with_filter else None
    if node is None:
        return CutQuery(f"select * from {quote_table(name)}", parsed.text)
    rows = copy.deepcopy(node)
    rows.update(select_list=_parse(connection, "select *")["select_list"], modifiers=[], group_expressions=[])
    rows.update(group_sets=[], having=None, aggregate_handling="STANDARD_HANDLING")
    limit = _find_limit(node)
    if limit is not None:
        rows["modifiers"] = [limit]
    final = {**copy.deepcopy(node), "where_clause": None}
    return CutQuery(_print(connection, parsed.statement, rows), _print(connection, parsed.statement, final))


def _find_plain_select(parsed: ParsedQuery) -> Node | None:
    """Return the SELECT over one table of files, without subqueries and window functions; else None."""
    node: Node = parsed.statement["statements"][0]["node"]
    if node["type"] != "SELECT_NODE" or node["cte_map"]["map"] or node.get("qualify") or node.get("sample"):
        return None
    table = node["from_table"]
    if table["type"] != "BASE_TABLE" or any(table.get(key) for key in _NO_TABLE) or len(parsed.tables) != 1:
        return None
    if any(one.get("class") in ("WINDOW", "SUBQUERY") for one in _walk(node)):
        return None
    return node


def _find_limit(node: Node) -> Node | None:
    """Return a LIMIT that each shard can apply, too: rows are neither ordered, grouped, compared nor unnested."""
    modifiers = node["modifiers"]
    plain = len(modifiers) == 1 and modifiers[0]["type"] == "LIMIT_MODIFIER" and not modifiers[0].get("offset")
    is_grouped = node["group_expressions"] or node["having"] or node["aggregate_handling"] != "STANDARD_HANDLING"
    if not plain or is_grouped or any(one.get("class") == "FUNCTION" for one in _walk(node["select_list"])):
        return None
    found: Node = modifiers[0]
    return found if found.get("limit") and found["limit"].get("class") == "CONSTANT" else None


@dataclass
class _Cutter:
    connection: Any
    node: Node
    columns: set[str]
    names: Sequence[str]
    _groups: list[Node] = field(default_factory=list)
    _items: list[Node] = field(default_factory=list)
    _merges: list[str] = field(default_factory=list)
    _known: dict[str, Node] = field(default_factory=dict)

    def cut(self, statement: Node) -> CutQuery | None:
        node = self.node
        aggregates = self._list_aggregates()
        if aggregates is None or not self._take_groups():
            return None
        final = copy.deepcopy(node)
        for number, group in enumerate(self._groups):
            self._items.append({**group, "alias": f"tfrkit_g{number}"})
        if len(final["select_list"]) != len(self.names):
            return None
        final["select_list"] = [
            {**self._replace(item, aggregates), "alias": name}
            for item, name in zip(final["select_list"], self.names, strict=True)
        ]
        final["having"] = self._replace(final["having"], aggregates)
        final["modifiers"] = self._replace(final["modifiers"], aggregates)
        references = [_parse_item(self.connection, f"tfrkit_g{number}") for number in range(len(self._groups))]
        sets = [list(range(len(references)))] if references else []
        final.update(where_clause=None, group_expressions=references, group_sets=sets)
        final.update(from_table=_parse(self.connection, f"select 1 from {PARTIALS}")["from_table"])
        if references:
            final["aggregate_handling"] = "STANDARD_HANDLING"
        partial = {**copy.deepcopy(node), "select_list": self._items, "modifiers": [], "having": None}
        partial.update(group_expressions=self._groups, group_sets=sets, aggregate_handling="STANDARD_HANDLING")
        return CutQuery(
            _print(self.connection, statement, partial), _print(self.connection, statement, final), self._write_merge()
        )

    def _list_aggregates(self) -> set[str] | None:
        """Return the names of all aggregates; None if the query has none, or one that cannot be cut."""
        names = "select distinct function_name from duckdb_functions() where function_type = 'aggregate'"
        known = {name for (name,) in self.connection.execute(names).fetchall()}
        node = self.node
        outside = [node["where_clause"], node["group_expressions"], node["from_table"]]
        if any(_is_aggregate(one, known) for one in _walk(outside)):
            return None
        inside = [node["select_list"], node["having"], node["modifiers"]]
        found = [one for one in _walk(inside) if _is_aggregate(one, known)]
        if not found:
            return None
        for one in found:
            is_plain = not one["distinct"] and not one["order_bys"]["orders"] and not one.get("export_state")
            inner = any(_is_aggregate(other, known) for other in _walk([one["arguments"], one["filter"]]))
            if one["function_name"] not in _FOLDS or not is_plain or inner or len(one["arguments"]) > 1:
                return None
        return known

    def _take_groups(self) -> bool:
        node = self.node
        items = node["select_list"]
        if any(one.get("class") in ("STAR", "POSITIONAL_REFERENCE") for one in _walk(items)):
            return False
        if node["aggregate_handling"] != "STANDARD_HANDLING" or len(node["group_sets"]) > 1:
            return False
        aliases = {fold_name(item["alias"]): item for item in items if item["alias"]}
        for group in node["group_expressions"]:
            if group["class"] == "CONSTANT":
                number = _read_number(group)
                if number is None or not 1 <= number <= len(items):
                    return False
                group = items[number - 1]
            elif group["class"] == "COLUMN_REF" and len(group["column_names"]) == 1:
                name = fold_name(group["column_names"][0])
                if name not in self.columns:
                    group = aliases.get(name, group)
            self._groups.append({**copy.deepcopy(group), "alias": ""})
        return True

    def _replace(self, value: Any, aggregates: set[str]) -> Any:
        """Replace groups and aggregates by references to columns of the partial results."""
        if isinstance(value, list):
            return [self._replace(item, aggregates) for item in value]
        if not isinstance(value, dict):
            return value
        if "class" in value:
            for number, group in enumerate(self._groups):
                if self._identify(value) == self._identify(group):
                    return {**_parse_item(self.connection, f"tfrkit_g{number}"), "alias": value["alias"]}
            if _is_aggregate(value, aggregates):
                return {**self._fold(value), "alias": value["alias"]}
        return {key: self._replace(item, aggregates) for key, item in value.items()}

    def _fold(self, aggregate: Node) -> Node:
        key = self._identify(aggregate)
        if key not in self._known:
            functions, expression = _FOLDS[aggregate["function_name"]]
            names = []
            for function in functions:
                names.append(f"tfrkit_a{len(self._merges)}")
                part = {**copy.deepcopy(aggregate), "function_name": function, "alias": names[-1]}
                part["qualified_name"] = {"path": [function]}
                self._items.append(part)
                self._merges.append(f"{_MERGES.get(function, function)}({names[-1]}) as {names[-1]}")
            self._known[key] = _parse_item(self.connection, expression.format(*names))
        return copy.deepcopy(self._known[key])

    def _identify(self, value: Any) -> str:
        """Return a text that is equal for equal expressions: without places and aliases, names without their table."""
        table = self.node["from_table"]
        qualifiers = {fold_name(name) for name in (table["alias"], table["table_name"]) if name}

        def reduce(item: Any) -> Any:
            if isinstance(item, list):
                return [reduce(one) for one in item]
            if not isinstance(item, dict):
                return item
            kept = {key: reduce(one) for key, one in item.items() if key not in _PLACE}
            if item.get("class") == "COLUMN_REF":
                names = [fold_name(name) for name in item["column_names"]]
                kept["column_names"] = names[1:] if len(names) > 1 and names[0] in qualifiers else names
            return kept

        return json.dumps(reduce(value), sort_keys=True)

    def _write_merge(self) -> str:
        groups = [f"tfrkit_g{number}" for number in range(len(self._groups))]
        by = f" group by {', '.join(groups)}" if groups else ""
        return f"select {', '.join([*groups, *self._merges])} from {PARTIALS}{by}"


def _is_aggregate(node: Node, aggregates: Collection[str]) -> bool:
    return node.get("class") == "FUNCTION" and node.get("function_name") in aggregates


def _read_number(constant: Node) -> int | None:
    literal = constant.get("literal") or {}
    # A number of thousands of digits, which Python does not parse, is no place of a column.
    return int(literal["text"]) if literal.get("kind") == "INTEGER" and len(literal["text"]) < 20 else None


def _walk(value: Any) -> Iterator[Node]:
    """Yield every object of a parsed query."""
    if isinstance(value, dict):
        yield value
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            yield from _walk(item)


def _parse(connection: Any, text: str) -> Node:
    node: Node = parse_sql(connection, text)["statements"][0]["node"]
    return node


def _parse_item(connection: Any, text: str) -> Node:
    item: Node = _parse(connection, f"select {text}")["select_list"][0]
    return item


def _print(connection: Any, statement: Node, node: Node) -> str:
    whole = copy.deepcopy(statement)
    whole["statements"][0]["node"] = node
    return print_sql(connection, whole)
