"""Parse Pascal VOC annotation files: the boxes of one image, as XML.

Files are parsed with expat alone. A document type declaration is refused before its contents are read, so no entities
are ever defined, with which a file could expand to gigabytes or include other files.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from xml.parsers import expat

from tfrkit.errors import SourceError

# An annotation of a thousand objects has 500 kB, 12,000 elements and five levels; a far larger one is an attack.
_MAX_NBYTES = 64 << 20
_MAX_ELEMENTS = 500_000
_MAX_DEPTH = 64
_EXPAT_ENCODINGS = frozenset({"utf-8", "utf8", "utf-16", "iso-8859-1", "us-ascii", "ascii"})
_VOC_FOLDER = re.compile(r"VOC20\d\d")
_VOC_DATABASE = re.compile(r"The VOC20\d\d Database", re.IGNORECASE)
_DECLARATION = re.compile(rb"""<\?xml[^>]*?encoding\s*=\s*["']([A-Za-z0-9._-]+)["']""")


@dataclass(frozen=True)
class VocObject:
    """One object: its name as in the file, xmin, ymin, xmax, ymax in pixels, and the line in which it starts."""

    name: str
    corners: tuple[float, float, float, float]
    difficult: int = 0
    truncated: int = 0
    pose: str = ""
    line: int = 0


@dataclass(frozen=True)
class VocAnnotation:
    """The annotation of one image; width and height are None if they are missing or 0.

    `problems` are (line, reason) of objects that cannot be read, which are not in `objects`. `is_voc` means that the
    file is Pascal VOC's own: its <folder> is VOC2007, or its <database> The VOC2007 Database, of any year.
    """

    filename: str
    width: int | None
    height: int | None
    objects: tuple[VocObject, ...]
    problems: tuple[tuple[int, str], ...] = ()
    is_voc: bool = False


@dataclass(slots=True)
class _Element:
    tag: str
    line: int
    pieces: list[str] = field(default_factory=list)
    children: list[_Element] = field(default_factory=list)

    @property
    def text(self) -> str:
        return "".join(self.pieces)

    def find(self, tag: str) -> _Element | None:
        return next((child for child in self.children if child.tag == tag), None)

    def text_of(self, tag: str) -> str:
        child = self.find(tag)
        return "" if child is None else child.text


def parse_voc_xml(data: bytes, path: str) -> VocAnnotation:
    """Parse an annotation; raises `SourceError` with the line if the bytes are not an annotation.

    Example:
        >>> one = parse_voc_xml(b"<annotation><filename>a.jpg</filename></annotation>", "a.xml")
        >>> one.filename, one.width, one.objects
        ('a.jpg', None, ())
    """
    root = _parse_tree(data, path)
    if root.tag != "annotation":
        raise SourceError(f"expected a VOC <annotation>, got <{root.tag:.40}>", shard=f"{path}, line {root.line}")
    size = root.find("size")
    objects: list[VocObject] = []
    problems: list[tuple[int, str]] = []
    for element in root.children:
        if element.tag == "object":
            try:
                objects.append(_read_object(element))
            except ValueError as error:
                problems.append((element.line, str(error)))
    return VocAnnotation(
        filename=root.text_of("filename").strip(),
        width=_read_size(size, "width"),
        height=_read_size(size, "height"),
        objects=tuple(objects),
        problems=tuple(problems),
        is_voc=_names_voc(root),
    )


def _names_voc(root: _Element) -> bool:
    source = root.find("source")
    database = "" if source is None else source.text_of("database")
    return bool(_VOC_FOLDER.fullmatch(root.text_of("folder").strip()) or _VOC_DATABASE.fullmatch(database.strip()))


def _parse_tree(data: bytes, path: str) -> _Element:
    if len(data) > _MAX_NBYTES:
        raise SourceError(f"expected an annotation of at most {_MAX_NBYTES:,} bytes, got {len(data):,}", shard=path)
    if not data.strip():
        raise SourceError("expected an XML annotation, got an empty file", shard=path)
    text, encoding = _decode_foreign(data, path)
    parser = expat.ParserCreate(encoding)
    parser.buffer_text = True
    top = _Element("", 0)
    open_elements = [top]
    num_elements = 0

    def start(tag: str, _: dict[str, str]) -> None:
        nonlocal num_elements
        num_elements += 1
        if num_elements > _MAX_ELEMENTS or len(open_elements) > _MAX_DEPTH:
            raise SourceError(
                f"expected at most {_MAX_ELEMENTS:,} elements in {_MAX_DEPTH} levels, got more",
                shard=f"{path}, line {parser.CurrentLineNumber}",
            )
        element = _Element(tag, parser.CurrentLineNumber)
        open_elements[-1].children.append(element)
        open_elements.append(element)

    def end(_: str) -> None:
        open_elements.pop()

    def characters(text: str) -> None:
        open_elements[-1].pieces.append(text)

    def refuse_document_type(*_: object) -> None:
        raise SourceError(
            "expected an annotation without a document type, got one, which could include other files",
            shard=f"{path}, line {parser.CurrentLineNumber}",
            hint="remove the <!DOCTYPE ...> line",
        )

    parser.StartElementHandler = start
    parser.EndElementHandler = end
    parser.CharacterDataHandler = characters
    parser.StartDoctypeDeclHandler = refuse_document_type
    parser.EntityDeclHandler = refuse_document_type
    try:
        parser.Parse(text, True)
    except expat.ExpatError as error:
        raise SourceError(
            f"not valid XML, {expat.ErrorString(error.code)}", shard=f"{path}, line {error.lineno}"
        ) from None
    return top.children[0]


def _decode_foreign(data: bytes, path: str) -> tuple[bytes, str | None]:
    """Return the document and the encoding to parse it in; encodings unknown to expat, such as GBK, become UTF-8."""
    declared = _DECLARATION.match(data[:200].lstrip())
    if declared is None or declared[1].decode().lower() in _EXPAT_ENCODINGS:
        return data, None
    encoding = declared[1].decode()
    try:
        return data.decode(encoding).encode(), "utf-8"
    except LookupError:
        raise SourceError(f"expected a known encoding, got {encoding!r:.40}", shard=f"{path}, line 1") from None
    except UnicodeError:
        raise SourceError(f"not text in {encoding}, which the file says it is", shard=f"{path}, line 1") from None


def _read_object(element: _Element) -> VocObject:
    """Parse one object; raises ValueError if it is invalid."""
    name = element.text_of("name")
    box = element.find("bndbox")
    if not name.strip():
        raise ValueError("object expected a name, got none")
    if box is None:
        raise ValueError(f"object {name.strip()!r:.64} expected a bndbox, got none")
    if sum(child.tag == "bndbox" for child in element.children) > 1:
        raise ValueError(f"object {name.strip()!r:.64} expected one bndbox, got several")
    return VocObject(
        name,
        (_read_side(box, "xmin"), _read_side(box, "ymin"), _read_side(box, "xmax"), _read_side(box, "ymax")),
        difficult=_read_flag(element, "difficult"),
        truncated=_read_flag(element, "truncated"),
        pose=element.text_of("pose").strip(),
        line=element.line,
    )


def _read_side(box: _Element, side: str) -> float:
    found = box.find(side)
    if found is None:
        raise ValueError(f"bndbox expected {side}, got none")
    try:
        value = float(found.text)
    except ValueError:
        raise ValueError(f"{side} expected a number, got {found.text.strip()!r:.64}") from None
    if not math.isfinite(value):
        raise ValueError(f"{side} expected a number, got {value}")
    return value


def _read_flag(element: _Element, tag: str) -> int:
    """Return a flag, 0 or 1; for 0 some tools leave the element out or empty."""
    text = element.text_of(tag).strip()
    if text.lower() in ("", "0", "false", "unspecified"):
        return 0
    if text.lower() in ("1", "true"):
        return 1
    raise ValueError(f"{tag} expected 0 or 1, got {text!r:.64}")


def _read_size(size: _Element | None, tag: str) -> int | None:
    """Return a size, or None if it is not a positive number: it is only compared with the true size of the image."""
    text = "" if size is None else size.text_of(tag).strip()
    try:
        value = float(text)
    except ValueError:
        return None
    return int(value) if 0 < value < 1 << 31 else None
