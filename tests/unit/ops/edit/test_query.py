from __future__ import annotations

import signal

import pytest

from tfrkit.ops.edit import query

pytest.importorskip("duckdb")


def test_interrupt_comes_after_a_text_is_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    """DuckDB turns an interrupt while it parses into an error of its own."""
    checked = []

    def check(duckdb: object, connection: object, part: object) -> None:
        signal.raise_signal(signal.SIGINT)
        checked.append(part)

    monkeypatch.setattr(query, "_check_expression", check)
    with pytest.raises(KeyboardInterrupt):
        query.compose_query("label = 1", {})
    assert len(checked) == 1
