"""Draw statistics as small inline SVG images. They contain only numbers from the data, never text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

_WIDTH, _HEIGHT = 220, 56


def draw_histogram(bins: Sequence[dict[str, Any]]) -> str:
    """Draw a histogram as bars, each with its range and count as a tooltip."""
    largest = max((one["count"] for one in bins), default=0)
    if largest == 0:
        return ""
    step = _WIDTH / len(bins)
    bars = []
    for number, one in enumerate(bins):
        height = one["count"] / largest * (_HEIGHT - 2)
        # A bin that is not empty must be visible.
        height = max(height, 1.0) if one["count"] else 0.0
        title = f"{one['start']:.6g} to {one['stop']:.6g}: {one['count']:,}"
        bars.append(
            f'<rect x="{number * step:.1f}" y="{_HEIGHT - height:.1f}" width="{max(1.0, step - 1):.1f}" '
            f'height="{height:.1f}"><title>{title}</title></rect>'
        )
    return _wrap(_WIDTH, _HEIGHT, "histogram", "".join(bars))


def draw_share(share: float, width: int = 120) -> str:
    """Draw a share between 0 and 1 as a bar."""
    filled = max(0.0, min(1.0, share)) * width
    return _wrap(
        width,
        12,
        f"{share:.1%}",
        f'<rect class="rail" width="{width}" height="12"/><rect width="{filled:.1f}" height="12"/>',
    )


def _wrap(width: int, height: int, label: str, content: str) -> str:
    return (
        f'<svg role="img" aria-label="{label}" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}">{content}</svg>'
    )
