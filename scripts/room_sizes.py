"""Refuses modules of more than 500 lines: a room that grows this large holds two ideas."""

from __future__ import annotations

import sys
from pathlib import Path

LIMIT = 500


def main() -> int:
    """0 where every module is small enough, else 1 with the list on stderr."""
    sizes = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in Path("src").rglob("*.py")}
    large = [f"{path}: {lines} lines, at most {LIMIT}" for path, lines in sorted(sizes.items()) if lines > LIMIT]
    print("\n".join(large), end="\n" if large else "", file=sys.stderr)
    return 1 if large else 0


if __name__ == "__main__":
    sys.exit(main())
