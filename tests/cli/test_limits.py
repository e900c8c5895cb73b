"""Limits of the core, as each command reports them."""

from __future__ import annotations

from pathlib import Path

import pytest

import tfrkit as tfr_package
from tfrkit._native import MAX_NAMES
from tfrkit.errors import LimitError


@pytest.fixture
def crowded(tmp_path: Path) -> Path:
    """One record with one feature too many."""
    path = tmp_path / "crowded.tfrecord"
    with tfr_package.Writer(path) as writer:
        writer.write({f"f{number}": number for number in range(MAX_NAMES + 1)})
    return path


def test_too_many_features_are_named_as_a_limit_by_every_command(tfr, crowded: Path) -> None:
    message = "more different feature names than tfrkit supports, limit 262,144, 262,145 in this record - at"
    for words in (["info"], ["stats"], ["schema"], ["export", "csv", "-o", "out.csv"]):
        assert message in tfr(*words, crowded, code=3).err
    verified = tfr("verify", crowded)
    assert "ok, 1 record" in verified.out
    assert "note: 1 record has more than 262,144 features: sound, but more than tfrkit decodes" in verified.err
    with pytest.raises(LimitError, match="limit 262,144"):
        list(tfr_package.open(str(crowded), on_error="skip"))
