"""Show a dataset in a notebook: a small table of its features, and its first images.

All text from files is escaped. A few images are decoded and re-encoded as thumbnails.
"""

from __future__ import annotations

import base64
import html
import io
from collections.abc import Callable, Iterator, Sequence
from itertools import islice

from tfrkit._types import Row
from tfrkit.errors import SchemaError, TfrkitError
from tfrkit.features.labels import LabelMap
from tfrkit.features.schema import Schema, describe_type, show_name
from tfrkit.pictures.features import find_picture_features
from tfrkit.pictures.picture import Picture, PictureReader
from tfrkit.sidecars.class_names import ClassNames

_NUM_PICTURES = 4
_SIDE = 96
_MAX_FEATURES = 30
_MAX_TEXT = 200

ReadRows = Callable[[Sequence[str]], Iterator[Row]]


def show_html(title: str, read_schema: Callable[[], Schema], read_rows: ReadRows, class_file: LabelMap | None) -> str:
    """Return a table of features and images as HTML, or the error that prevents reading them.

    `read_rows` returns rows with the requested features only.
    """
    parts = [f"<div><b>{_escape(title)}</b>"]
    try:
        schema = read_schema()
        parts.append(_make_table(schema))
        parts += _show_pictures(schema, read_rows, class_file)
    except TfrkitError as error:
        parts.append(f"<p>{_escape(str(error))}</p>")
    return "".join([*parts, "</div>"])


def _make_table(schema: Schema) -> str:
    names = list(schema.names)
    rows = [
        f"<tr><td>{_escape(show_name(name, quotes=False))}</td><td>{_escape(describe_type(schema[name]))}</td>"
        f"<td>{_escape(str(schema[name].shape))}</td><td>{_escape(schema[name].meaning or '')}</td></tr>"
        for name in names[:_MAX_FEATURES]
    ]
    if len(names) > _MAX_FEATURES:
        rows.append(f"<tr><td>… {len(names) - _MAX_FEATURES} more</td></tr>")
    head = "<tr><th>feature</th><th>type</th><th>shape</th><th>meaning</th></tr>"
    return f"<table>{head}{''.join(rows)}</table>"


def _show_pictures(schema: Schema, read_rows: ReadRows, class_file: LabelMap | None) -> list[str]:
    try:
        features = find_picture_features(schema)
    except SchemaError:
        return []  # no image feature
    reader = PictureReader(schema, features, ClassNames.of_schema(schema, class_file), side=_SIDE)
    shown = []
    try:
        for row in islice(read_rows(features.names), _NUM_PICTURES):
            shown.append(_show_picture(reader.read(row)))
    except TfrkitError as error:
        shown.append(f"<p>{_escape(str(error))}</p>")
    return shown


def _show_picture(picture: Picture) -> str:
    if picture.pixels is None:
        return f"<span>{_escape(picture.cause or 'no image')}</span> "
    from PIL import Image

    file = io.BytesIO()
    Image.fromarray(picture.pixels).save(file, "PNG")
    data = base64.b64encode(file.getvalue()).decode("ascii")
    return f'<img src="data:image/png;base64,{data}" title="{_escape(picture.label)}"> '


def _escape(text: str) -> str:
    return html.escape(text[:_MAX_TEXT])
