from __future__ import annotations

import importlib.util
from typing import Any

import pytest

import tfrkit
from tfrkit.features.schema import Schema
from tfrkit.ops import bench_gpu
from tfrkit.ops.bench_gpu import GpuDecoding, time_gpu


def test_records_without_images_need_no_gpu() -> None:
    found = time_gpu([b""], Schema({"label": "int64"}))
    assert found == GpuDecoding(None, None, "no images, so a GPU has nothing to decode")


def test_missing_packages_are_named_in_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "torchvision" else object())
    schema = Schema({"image": tfrkit.Spec("bytes", logical="image")})
    assert time_gpu([b""], schema).to_json() == {
        "cpu_images_per_s": None,
        "gpu_images_per_s": None,
        "verdict": "not with a GPU: torchvision not installed, the CPU decodes",
    }


@pytest.mark.parametrize(
    ("cpu", "gpu", "reasons", "verdict"),
    [
        (900.4, 5300.0, [], "faster on the GPU: it decodes 5,300 images/s to 224x224, 2 cores 900"),
        (900.4, 500.0, [], "not faster on the GPU: it decodes 500 images/s to 224x224, 2 cores 900"),
        (
            900.4,
            950.0,
            [("progressive JPEG", 9)],
            "faster on the GPU: it decodes 950 images/s to 224x224, 2 cores 900; "
            "25% stay on the CPU, most: progressive JPEG",
        ),
    ],
)
def test_verdict_gives_both_speeds_and_the_reason(
    monkeypatch: pytest.MonkeyPatch, cpu: float, gpu: float, reasons: list[Any], verdict: str
) -> None:
    monkeypatch.setattr(bench_gpu, "count_cores", lambda: 2)
    assert bench_gpu._judge(cpu, gpu, 0.25, reasons) == verdict
