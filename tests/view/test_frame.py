"""The viewer in a notebook."""

from __future__ import annotations

import re
import urllib.error
import urllib.request

import pytest

import tfrkit

pytest.importorskip("uvicorn")
pytest.importorskip("starlette")


def test_dataset_is_shown_in_a_frame_whose_address_is_its_key(pictures: str) -> None:
    with tfrkit.open(pictures) as dataset:
        frame = dataset.view(where="label = 1", height=500)
        try:
            shown = frame._repr_html_()
            assert 'height="500"' in shown
            (address,) = re.findall(r'src="([^"]*)"', shown)
            assert re.fullmatch(r"http://127\.0\.0\.1:\d+/[0-9a-f]{32}/\?where=label\+%3D\+1", address)
            assert address == frame.address
            with urllib.request.urlopen(address) as page:
                assert "frame-ancestors http://localhost:*" in page.headers["content-security-policy"]
                assert page.headers["x-frame-options"] is None
            with urllib.request.urlopen(address.split("?")[0] + "api/set") as answer:
                assert answer.status == 200
            with pytest.raises(urllib.error.HTTPError, match="403"):
                urllib.request.urlopen(re.sub("/[0-9a-f]{32}/", "/" + "0" * 32 + "/", address))
        finally:
            frame.stop()


def test_part_is_refused(pictures: str) -> None:
    with tfrkit.open(pictures) as dataset, pytest.raises(ValueError, match="view shows all records of the files"):
        dataset.take(3).view()
