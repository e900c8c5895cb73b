from __future__ import annotations

import pytest

from tfrkit.storage.options import StorageOptions, options_of, parse_cache, set_options, use_storage


@pytest.mark.parametrize(
    ("text", "size"), [("/a:1", 1), ("/a:2K", 2000), ("/a:1.5M", 1_500_000), ("/a:3GB", 3 * 10**9), ("/a:1TiB", 10**12)]
)
def test_cache_is_folder_and_size(text: str, size: int) -> None:
    assert parse_cache(text) == ("/a", size)


@pytest.mark.parametrize("text", ["", "/a", "/a:", ":5G", "/a:x", "/a:-1"])
def test_other_text_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="expected DIR:SIZE"):
        StorageOptions(cache=text)


def test_endpoint_with_a_secret_is_refused_without_naming_it() -> None:
    with pytest.raises(ValueError, match="without a password") as caught:
        StorageOptions(endpoint="https://me:secret@host")
    assert "secret" not in str(caught.value)


def test_options_of_a_store_come_before_those_of_the_process() -> None:
    use_storage(anonymous=True)
    try:
        assert options_of("s3://some").anonymous
        set_options("s3://some", StorageOptions(endpoint="http://x"))
        assert options_of("s3://some") == StorageOptions(endpoint="http://x")
    finally:
        use_storage()
