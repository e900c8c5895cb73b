"""Render the statistics of a dataset as one self-contained HTML page: no script, no other file, no network.

Content of records is untrusted: it is escaped, and the page's Content-Security-Policy allows only its own style and
embedded images.
"""

from __future__ import annotations

import base64
import html
import io
import os
from collections.abc import Iterable, Sequence
from typing import Any

from tfrkit.errors import CodecError
from tfrkit.images.decode import decode_image, measure_image
from tfrkit.images.options import DecodeOptions
from tfrkit.ops.stats.features import Sample
from tfrkit.ops.stats.plots import draw_histogram, draw_share

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
_STYLE = """
body{font:14px/1.45 system-ui,sans-serif;margin:2em auto;max-width:1100px;padding:0 1em;color:#1b1f24;background:#fff}
h1{font-size:1.5em}h2{font-size:1.2em;margin-top:2em;border-bottom:1px solid #d0d7de}
h3{font-size:1em;margin-bottom:.3em}
table{border-collapse:collapse;margin:.4em 0}th,td{padding:.15em .9em .15em 0;text-align:left;vertical-align:top}
th{font-weight:600;color:#57606a}td.n{text-align:right;font-variant-numeric:tabular-nums}
section{display:flex;flex-wrap:wrap;gap:1.5em;align-items:flex-start}
svg{fill:#2f6feb}svg .rail{fill:#e6eaef}.flag{color:#b42318;font-weight:600}.note{color:#57606a}
figure{display:inline-block;margin:.4em;text-align:center;width:140px;vertical-align:top;overflow-wrap:anywhere}
figure img{max-width:128px;max-height:128px}figcaption{font-size:12px}bdi{overflow-wrap:anywhere}
@media(prefers-color-scheme:dark){body{background:#0d1117;color:#e6edf3}h2{border-color:#30363d}
th,.note{color:#9198a1}svg{fill:#4493f8}svg .rail{fill:#21262d}.flag{color:#ff7b72}}
"""
_SIDE = 128  # pixels of a thumbnail
_MAX_CLASSES = 100
_MAX_FINDINGS = 100
_MAX_TEXT = 300


def print_html(result: dict[str, Any], samples: Sequence[Sample]) -> str:
    """Render the page from the result of `Stats.to_json` and some records."""
    title = f"{_name_dataset(result)}: {result['records']:,} records"
    parts = [
        f"<h1>{show(title)}</h1>",
        _print_summary(result),
        _print_findings(result),
        _print_classes(result["classes"], [split["name"] for split in result["splits"]]),
        _print_comparison(result["comparison"]),
        "<h2>Features</h2>" if result["features"] else "",
        *(_print_feature(feature, result["records"]) for feature in result["features"]),
        _print_samples(samples),
        '<p class="note">Values marked ≈ are estimates: quantiles and histograms within 0.5 % of rank, numbers of '
        "different values within about 3 %. All others are exact.</p>",
    ]
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{html.escape(_POLICY)}">'
        f'<meta name="viewport" content="width=device-width"><title>{show(title, isolated=False)}</title>'
        f"<style>{_STYLE}</style></head><body>\n" + "\n".join(filter(None, parts)) + "\n</body></html>\n"
    )


def show(value: object, *, isolated: bool = True) -> str:
    """Convert a value to HTML text: escaped, cut, and isolated so that it cannot reverse the text around it."""
    text = str(value)
    text = text if len(text) <= _MAX_TEXT else text[: _MAX_TEXT - 1] + "…"
    # Lone surrogates cannot be encoded; control characters mean nothing in a page.
    text = "".join(char if char.isprintable() else f"\\u{ord(char):04x}" for char in text)
    escaped = html.escape(text)
    return f"<bdi>{escaped}</bdi>" if isolated else escaped


def _print_summary(result: dict[str, Any]) -> str:
    rows: list[tuple[str, object]] = [
        ("files", f"{len(result['files']):,}"),
        ("records", f"{result['records']:,}"),
        ("kind", result["kind"]),
    ]
    sizes = result["record_bytes"]
    if sizes is not None:
        rows.append(
            ("bytes of a record", f"{_number(sizes['min'])} to {_number(sizes['max'])}, mean {_number(sizes['mean'])}")
        )
    rows += [(f"split {split['name']}", f"{split['records']:,} records") for split in result["splits"]]
    notes = "".join(f'<p class="note">{show(note)}</p>' for note in result["notes"])
    plot = draw_histogram(sizes["histogram"]) if sizes is not None else ""
    return f"<section>{_table((), rows)}<div>{plot}</div></section>{notes}"


def _print_findings(result: dict[str, Any]) -> str:
    if not result["findings"]:
        return ""
    rows = [
        (finding["shard"], finding["record"], finding["offset"], finding["cause"])
        for finding in result["findings"][:_MAX_FINDINGS]
    ]
    table = _table(("file", "record", "byte", "cause"), rows)
    return f'<h2>Left out</h2><p class="flag">{result["skipped"]:,} left out, the first ones:</p>{table}'


def _print_classes(classes: Sequence[dict[str, Any]], splits: Sequence[str]) -> str:
    parts = []
    for one in classes:
        head = ["class", "name", "count", "share", "", *splits]
        lines = []
        for entry in sorted(one["classes"], key=lambda entry: -entry["count"])[:_MAX_CLASSES]:
            cells = [
                show(_text(entry["value"])),
                show(entry["name"] or ""),
                f"{entry['count']:,}",
                f"{entry['share']:.2%}",
            ]
            cells.append(draw_share(entry["share"]))
            cells += [f"{entry['splits'][split]['share']:.2%}" for split in splits]
            lines.append("<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>")
        caption = f"{one['num_classes']:,} classes, the largest {one['largest_to_smallest']:,.3g} times the smallest"
        if one["unused"]:
            caption += f", {len(one['unused']):,} named classes never come"
        heads = "".join(f"<th>{show(name)}</th>" for name in head)
        parts.append(f"<h3>{show(one['feature'])}</h3><p>{caption}</p><table><tr>{heads}</tr>{''.join(lines)}</table>")
    return f"<h2>Classes</h2>{''.join(parts)}" if parts else ""


def _print_comparison(comparison: dict[str, Any] | None) -> str:
    if comparison is None:
        return ""
    lines = []
    for feature in comparison["features"]:
        for split in feature["splits"]:
            if split["split"] == comparison["reference"]:
                continue
            distance = "" if split["distance"] is None else f"{split['distance']:.3f}"
            why = f'<span class="flag">{show(split["why"])}</span>' if split["flagged"] else ""
            cells = (
                show(feature["name"]),
                show(split["split"]),
                f"{split['share']:.1%}",
                _number(split["mean"]),
                distance,
            )
            row = "".join(f"<td>{cell}</td>" for cell in (*cells, show(feature["method"] or ""), why))
            lines.append(f"<tr>{row}</tr>")
    names = ("feature", "split", "present", "mean", "distance", "measured by", "")
    heads = "".join(f"<th>{name}</th>" for name in names)
    return (
        f"<h2>Splits against {show(comparison['reference'])}</h2><p>{comparison['flagged']:,} flagged: a distance "
        f"above 0.1 and above what chance explains</p><table><tr>{heads}</tr>{''.join(lines)}</table>"
    )


def _print_feature(feature: dict[str, Any], records: int) -> str:
    name = f"{feature['name']} (feature list)" if feature["list"] else feature["name"]
    rows: list[tuple[str, object]] = [
        ("type", feature["type"] or "never set"),
        ("present", f"{feature['present']:,} of {records:,} ({feature['share']:.1%})"),
        ("meaning", feature["meaning"]),
    ]
    for title, key in (("frames", "frames"), ("length", "lengths"), ("size", "sizes")):
        if feature[key] is not None:
            rows.append((title, _span(feature[key])))
    if feature["distinct"] is not None:
        rows.append(("different", f"{'' if feature['distinct_exact'] else '≈ '}{feature['distinct']:,}"))
    numbers, images = feature["numbers"], feature["images"]
    plot = feature["sizes"]["histogram"] if feature["sizes"] is not None else []
    if numbers is not None:
        plot = numbers["histogram"]
        rows += [("range", _span(numbers)), ("deviation", _number(numbers["std"]))]
        rows += [(key, f"{numbers[key]:,}") for key in ("zeros", "nan", "infinite") if numbers[key]]
        if numbers["quantiles"] is not None:
            shown = ", ".join(f"{key} {_number(value)}" for key, value in numbers["quantiles"].items())
            rows.append(("quantiles" if numbers["exact"] else "quantiles ≈", shown))
    if images is not None:
        rows.append(("images", ", ".join(f"{count:,} {name}" for name, count in images["formats"].items())))
        rows += [(key, _span(images[key])) for key in ("width", "height") if images[key] is not None]
    top = _print_top(feature["top"])
    return (
        f"<h3>{show(name)}</h3><section>{_table((), rows)}<div>{draw_histogram(plot)}</div><div>{top}</div></section>"
    )


def _print_top(top: Sequence[dict[str, Any]]) -> str:
    lines = []
    for one in top:
        name = f" {show(one['name'])}" if one["name"] else ""
        lines.append(
            f'<tr><td>{show(_text(one["value"]))}{name}</td><td class="n">{one["count"]:,}</td>'
            f"<td>{draw_share(one['share'], 80)}</td></tr>"
        )
    return f"<table>{''.join(lines)}</table>" if lines else ""


def _print_samples(samples: Sequence[Sample]) -> str:
    figures = []
    for sample in samples:
        labels = ", ".join(f"{name} {_text(value)}" for name, value in sample.labels.items())
        where = f"{os.path.basename(sample.shard)}, record {sample.record}"
        for value in sample.images.values():
            picture = make_thumbnail(value)
            if picture is None:
                shown = '<span class="flag">does not decode</span>'
            else:
                kind, data = picture
                shown = f'<img alt="" src="data:image/{kind};base64,{base64.b64encode(data).decode()}">'
            figures.append(
                f'<figure title="{show(where, isolated=False)}">{shown}<figcaption>{show(labels)}</figcaption></figure>'
            )
    return f"<h2>Some records</h2>{''.join(figures)}" if figures else ""


def make_thumbnail(value: bytes) -> tuple[str, bytes] | None:
    """Make a small copy of an image from its pixels: ("png" or "jpeg", bytes), or None if it does not decode."""
    from PIL import Image

    try:
        size = measure_image(memoryview(value), DecodeOptions())
        if size is not None:
            scale = min(1.0, _SIDE / max(size))
            size = max(1, round(size[0] * scale)), max(1, round(size[1] * scale))
        pixels = decode_image(value, size=size or (_SIDE, _SIDE))
    except CodecError:
        return None
    kind = "png" if pixels.shape[0] * pixels.shape[1] <= 64 * 64 else "jpeg"
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, kind, **({"quality": 80} if kind == "jpeg" else {}))
    return kind, file.getvalue()


def _table(heads: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    lines = ["<tr>" + "".join(f"<th>{show(head)}</th>" for head in heads) + "</tr>"] if heads else []
    for row in rows:
        first = "td" if heads else "th"
        cells = "".join(f"<td>{show(cell)}</td>" for cell in row[1:])
        lines.append(f"<tr><{first}>{show(row[0])}</{first}>{cells}</tr>")
    return f"<table>{''.join(lines)}</table>"


def _span(summary: dict[str, Any]) -> str:
    if summary["min"] == summary["max"]:
        return _number(summary["min"])
    return f"{_number(summary['min'])} to {_number(summary['max'])}, mean {_number(summary['mean'])}"


def _number(value: object) -> str:
    if isinstance(value, float):
        return f"{value:,.5g}"
    return f"{value:,}" if isinstance(value, int) else "" if value is None else str(value)


def _text(value: Any) -> str:
    """Convert a JSON value to readable text."""
    if isinstance(value, dict):
        return str(next(iter(value.values()), ""))
    if isinstance(value, bytes):
        return str(value, "utf-8", "replace")
    return _number(value) if isinstance(value, float) else str(value)


def _name_dataset(result: dict[str, Any]) -> str:
    files = result["files"]
    if len(files) == 1:
        return os.path.basename(str(files[0]["path"]))
    return f"{len(files):,} files"
