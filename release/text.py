"""Write the text of a release in English and Chinese: RELEASE.md and RELEASE.zh.md, from the notes in changes/."""

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
    "校验和见 SHA256SUMS；每个文件都附有构建它的工作流的证明。以下条目保留英文原文，各节给出条数。",
)


def main(version: str, folder: Path) -> None:
    """Write both texts into the folder."""
    notes = sorted(Path("changes").glob("*.md"))
    for language, name in enumerate(("RELEASE.md", "RELEASE.zh.md")):
        readme = Path(("README.md", "README.zh.md")[language]).read_text(encoding="utf-8")
        parts = [INTRO[language].format(version=version), find_reasons(readme)]
        for kind, titles in KINDS.items():
            texts = [note.read_text(encoding="utf-8").strip() for note in notes if note.suffixes[0] == f".{kind}"]
            if texts:
                parts.append(f"## {titles[language]} ({len(texts)})\n")
                parts.append("\n".join("- " + text.replace("\n", "\n  ") for text in texts))
        (folder / name).write_text("\n\n".join(parts) + "\n", encoding="utf-8")
        print(f"{name}: {len(notes)} notes")


def find_reasons(readme: str) -> str:
    """The first list of a README, which says why to use it, without its links."""
    start = readme.index("\n- **") + 1
    return re.sub(r"\[(.*?)\]\(.*?\)", r"\1", readme[start : readme.index("\n\n", start)])


main(sys.argv[1], Path(sys.argv[2]))
