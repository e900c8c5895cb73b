from __future__ import annotations

import pytest

from tfrkit.errors import QueryError
from tfrkit.ops.query.places import NUMBER_COLUMN
from tfrkit.ops.query.text import ParsedQuery, ask_for_numbers, find_copied_table, fold_name, is_ordered, parse_query

duckdb = pytest.importorskip("duckdb")


def parse(text: str) -> ParsedQuery:
    with duckdb.connect() as connection:
        return parse_query(connection, text)


@pytest.mark.parametrize(
    ("text", "tables", "names"),
    [
        ("select 1", [], set()),
        ("select label from 'train-*'", ["train-*"], {"label"}),
        ('select "Image/Height" from "a b.tfrecord"', ["a b.tfrecord"], {"image/height"}),
        ("select count(*) from 'x'", ["x"], set()),
        ("select count(*) n from 'x' where a > 1 group by b having max(c) > 0 order by d", ["x"], {"a", "b", "c", "d"}),
        ("select l.a from 'x' l join 'y' r on l.k = r.k2", ["x", "y"], {"l", "a", "k", "k2", "r"}),
        ("select a from 'x' join 'y' using (id)", ["x", "y"], {"a", "id"}),
        ("with t as (select * from 'x') select a from t", ["x"], {"a"}),
        ("with t as (select * from 'x'), u as (select b from t) select a from u", ["x"], {"a", "b"}),
        ("select a from (select * from 'x' where b) s", ["x"], {"a", "b"}),
        ("select a from (select * exclude (c) from 'x') s", ["x"], {"a", "c"}),
        ("select a from (select * replace (d as a) from 'x') s", ["x"], {"a", "d"}),
        ("select a from 'x' where exists (select * from 'y' where k = 1)", ["x", "y"], {"a", "k"}),
        ("select sum(a) over (partition by b order by c) from 'x'", ["x"], {"a", "b", "c"}),
        ("select context.name, t.feature_lists.frame from 'x' t", ["x"], {"context", "name", "frame"}),
        ("select list_transform(a, lambda v: v + b) from 'x'", ["x"], {"a", "b"}),
        ("select a from 'x' union all select b from 'y'", ["x", "y"], {"a", "b"}),
        ("select (select max(a) from 'y') from 'x' where b in (select c from 'z')", ["y", "x", "z"], {"a", "b", "c"}),
        ("select struct_pack(p := a) from 'x' qualify row_number() over (order by b) = 1", ["x"], {"a", "b"}),
        ("select a from 'x', unnest([1, 2]) u(n), range(3)", ["x"], {"a"}),
        ("select case when a then b else c end, cast(d as int), e between f and g from 'x'", ["x"], set("abcdefg")),
    ],
)
def test_tables_and_names_of_a_query_are_found(text: str, tables: list[str], names: set[str]) -> None:
    parsed = parse(text)
    assert sorted(parsed.tables) == sorted(tables)
    assert parsed.names >= names
    assert not parsed.wants_all


@pytest.mark.parametrize(
    "text",
    [
        "select * from 'x'",
        "from 'x'",
        "select x.* from 'x' x",
        "select columns('a.*') from 'x'",
        "select min(columns(*)) from 'x'",
        "select #1 from 'x'",
        "select x from 'x'",
        "select t from 'x' t",
        "select t from (select * from 'x') t",
        "select a from 'x' t(a, b)",
        "select a from (select * from 'x') t(a, b)",
        "with t(a, b) as (select * from 'x') select a from t",
        "select a from 'x' natural join 'y'",
        "select a from (select distinct * from 'x')",
        "select a from (select * from 'x' union select * from 'y')",
        "select count(*) from (select * from 'x' intersect select * from 'y')",
        "select 1 where 1 in (select * from 'x')",
        "select (select * from 'x')",
        "select a from (select * from 'x' group by all)",
        "summarize 'x'",
        "describe 'x'",
        "with t as (select * from 'x') select * from t",
        "with recursive t as (select * from 'x' union all select * from t) select a from t",
        "select a from 'x' pivot (sum(b) for c in (1, 2))",
        "select a from 'x' unpivot (v for n in (b, c))",
    ],
)
def test_everything_is_wanted_where_columns_can_be_reached_without_their_names(text: str) -> None:
    assert parse(text).wants_all


def test_whole_structs_are_reported() -> None:
    assert parse("select context.a from 'x'").whole_structs == frozenset()
    assert parse("select context, t.feature_lists from 'x' t").whole_structs == {"context", "feature_lists"}
    assert parse("select CONTEXT['a'] from 'x'").whole_structs == {"context"}


def test_with_clause_name_shadows_a_file_only_after_it() -> None:
    assert list(parse("with t as (select * from t) select a from t").tables) == ["t"]
    assert list(parse("select a from (with t as (select 1 a) select a from t), t u").tables) == ["t"]
    assert list(parse("with t as (select 1 a) select a from T").tables) == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "expected one SELECT, got nothing"),
        ("select 1; select 2", "expected one SELECT, got 2 of them"),
        ("copy (select 1) to 'x'", "expected a SELECT, got another statement"),
        ("install httpfs", "expected a SELECT, got another statement"),
        ("attach 'x.db'", "expected a SELECT, got another statement"),
        ("set threads = 1", "expected a SELECT, got another statement"),
        ("select * frm 'x'", "syntax error at or near .* - at character 14 of the query"),
        ("select 'ü', a frm 'x'", "at character 19 of the query"),
        ("select * from read_csv('x')", r"tables are TFRecord files, got the function read_csv\(\) - at character 15"),
        ("select * from query('select 1')", r"got the function query\(\)"),
        ("select 1 where 1 in (select n from glob('*') g(n))", r"got the function glob\(\)"),
        (
            "select * from train.tfrecord",
            r"expected the name of a file in quotes, got train.tfrecord - at character 15",
        ),
        ("select * from 'A' join 'a' using (x)", "differ in case only, 'A' and 'a'"),
    ],
)
def test_what_is_no_query_over_files_is_refused(text: str, message: str) -> None:
    with pytest.raises(QueryError, match=message):
        parse(text)


def test_syntax_error_has_its_position_and_is_drawn() -> None:
    with pytest.raises(QueryError, match=r"\n  select \* frm 'x'\n               \^$") as caught:
        parse("select 'a',\nselect * frm 'x'".partition("\n")[2])
    assert caught.value.position == 13


@pytest.mark.parametrize(
    ("text", "table"),
    [
        ("select * from 'x'", "x"),
        ("from 'x' where a > 1", "x"),
        ("select t.* from 'x' t where a in (select b from 'y') order by c desc limit 3", "x"),
        ("select * from 'x' using sample 3 rows", "x"),
        ("select a from 'x'", None),
        ("select *, a from 'x'", None),
        ("select * exclude (a) from 'x'", None),
        ("select * replace (1 as a) from 'x'", None),
        ("select distinct * from 'x'", None),
        ("select * from 'x' group by all", None),
        ("select * from 'x' join 'y' using (a)", None),
        ("select * from (select * from 'x')", None),
        ("with t as (select 1) select * from t", None),
        ("select * from 'x' t(a)", None),
        ("select columns(*) from 'x'", None),
        ("select * from 'x' union select * from 'y'", None),
    ],
)
def test_records_are_copied_only_where_rows_are_records(text: str, table: str | None) -> None:
    assert find_copied_table(parse(text)) == table


def test_query_for_numbers_keeps_everything_but_the_columns() -> None:
    with duckdb.connect() as connection:
        parsed = parse_query(connection, "select * from 'a-*' t where t.x > 1 and y = 'it''s' order by z limit 2")
        asked = ask_for_numbers(connection, parsed)
        connection.execute(
            f'create view "a-*" as select * from (values (2, $$it\'s$$, 5, 7)) v(x, y, z, {NUMBER_COLUMN})'
        )
        assert connection.execute(asked.text).fetchall() == [(7,)]
    assert is_ordered(parsed)
    assert asked.names >= {"x", "y", "z", NUMBER_COLUMN}
    assert not asked.wants_all


@pytest.mark.parametrize("order", ["1", "all", "2 desc"])
def test_query_for_numbers_refuses_an_order_by_position(order: str) -> None:
    with (
        duckdb.connect() as connection,
        pytest.raises(QueryError, match="got an ORDER BY of a number or ALL\n  name the column"),
    ):
        ask_for_numbers(connection, parse_query(connection, f"select * from 'x' order by {order}"))


def test_names_are_folded_as_duckdb_does() -> None:
    assert fold_name("ÀBC") == "Àbc"
