"""Write the text of a release: RELEASE.md from the notes in changes/, RELEASE.zh.md from their Chinese summary."""

from __future__ import annotations

import re
import sys
from pathlib import Path

KINDS = {
    "break": ("What breaks", "不兼容的改动"),
    "feature": ("New", "新功能"),
    "fix": ("Fixed", "修复"),
    "doc": ("Documentation", "文档"),
}
INTRO = (
    "tfrkit {version}: TFRecord datasets without TensorFlow.\n\n```console\n$ pip install tfrkit=={version}\n```\n\n"
    "Checksums are in SHA256SUMS; every file carries an attestation of the workflow that built it.",
    "tfrkit {version}：不依赖 TensorFlow 的 TFRecord 数据集工具。\n\n"
    "```console\n$ pip install tfrkit=={version}\n```\n\n"
    "校验和见 SHA256SUMS；每个文件都附有构建它的工作流的证明。全部改动的英文条目见 CHANGELOG.md。",
)


def main(version: str, folder: Path) -> None:
    """Write both texts into the folder; ends with a list of the notes that the Chinese text lacks."""
    notes = {path.stem: path.read_text(encoding="utf-8").strip() for path in sorted(Path("changes").glob("*.md"))}
    texts = (list_notes(notes), read_summary(Path("release/summary.zh.md"), set(notes)))
    for intro, text, suffix in zip(INTRO, texts, (".md", ".zh.md"), strict=True):
        reasons = find_reasons(Path(f"README{suffix}").read_text(encoding="utf-8"))
        parts = (intro.format(version=version), reasons, text)
        (folder / f"RELEASE{suffix}").write_text("\n\n".join(parts) + "\n", encoding="utf-8")
        print(f"RELEASE{suffix}: {len(notes)} notes")


def list_notes(notes: dict[str, str]) -> str:
    """All notes in full, by their kinds; a name is such as "exif.break"."""
    parts = []
    for kind, (title, _) in KINDS.items():
        texts = [text for name, text in notes.items() if name.endswith(f".{kind}")]
        if texts:
            parts += [f"## {title} ({len(texts)})", "\n".join("- " + text.replace("\n", "\n  ") for text in texts)]
    return "\n\n".join(parts)


def read_summary(path: Path, names: set[str]) -> str:
    """The summary without its comments; each note has to be in one of its lines, below the title of its kind."""
    kinds = {title: kind for kind, (_, title) in KINDS.items()}
    found, kind, lines = [], "", []
    for line in path.read_text(encoding="utf-8").splitlines()[2:]:
        if line.startswith("## "):
            kind = kinds[line.removeprefix("## ")]
        text, _, slugs = line.partition(" <!-- ")
        if line.startswith("- ") and not slugs:
            sys.exit(f"{path}: expected the names of notes after this line: {line}")
        found += [f"{slug}.{kind}" for slug in slugs.removesuffix("-->").split()]
        lines.append(text)
    for what, wrong in {
        "notes that no line sums up": names - set(found),
        "names of no note": set(found) - names,
        "notes that two lines sum up": {name for name in found if found.count(name) > 1},
    }.items():
        if wrong:
            sys.exit(f"{path}: {what}: {', '.join(sorted(wrong))}")
    return "\n".join(lines)


def find_reasons(readme: str) -> str:
    """The first list of a README, which says why to use it, without its links."""
    start = readme.index("\n- **") + 1
    return re.sub(r"\[(.*?)\]\(.*?\)", r"\1", readme[start : readme.index("\n\n", start)])


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
