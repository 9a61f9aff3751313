"""Take guards away one by one and see a test fail: ``python scripts/mutants.py TABLE.toml [PART PARTS]``.

Each entry of the table names a guard, a file of the package it guards, the text that is replaced (found once), what
stands there instead, and the tests that must fail then. Every mutant runs in a forked child that compiles the changed
source in place of the file: nothing is written. Prints what survived; exit 1 where something did.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
import tomllib
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, SourceFileLoader
from pathlib import Path
from types import CodeType

import pytest

ROOT = Path(__file__).parents[1]


class Changed(SourceFileLoader):
    """Compiles another text than the file's."""

    def __init__(self, name: str, path: str, text: str) -> None:
        super().__init__(name, path)
        self._text = text

    def get_code(self, fullname: str) -> CodeType:
        return compile(self._text, self.path, "exec", dont_inherit=True)


class Mutant(MetaPathFinder):
    """Finds one module, changed."""

    def __init__(self, name: str, path: Path, text: str) -> None:
        self._name, self._path, self._text = name, str(path), text

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: object = None) -> ModuleSpec | None:
        if fullname != self._name:
            return None
        return importlib.util.spec_from_file_location(
            fullname, self._path, loader=Changed(fullname, self._path, self._text)
        )


def run(tests: Sequence[str], mutant: Mutant | None) -> int:
    """Pytest's exit code for some tests, in a child of its own; 70 where it broke."""
    child = os.fork()
    if child == 0:
        code = 70
        try:
            if mutant is not None:
                sys.meta_path.insert(0, mutant)
            silence = os.open(os.devnull, os.O_WRONLY)
            os.dup2(silence, 1)
            os.dup2(silence, 2)
            quiet = ["-q", "-x", "-p", "no:cacheprovider", "--tb=no", "-W", "ignore::pytest.PytestAssertRewriteWarning"]
            code = int(pytest.main([*quiet, *tests]))
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def outcome(entry: dict[str, object], package: Path, tests: Path) -> str:
    """``killed``, or what is wrong with the mutant."""
    path = package / str(entry["file"])
    text, old = path.read_text("utf-8"), str(entry["old"])
    if text.count(old) != 1:
        return f"its text is found {text.count(old)} times in {entry['file']}"
    name = ".".join(path.relative_to(ROOT / "src").with_suffix("").parts)
    code = run(_ids(entry, tests), Mutant(name, path, text.replace(old, str(entry["new"]))))
    return {0: "survived", 1: "killed"}.get(code, f"pytest ended with {code}")


def _ids(entry: dict[str, object], tests: Path) -> list[str]:
    wanted = entry["tests"]
    assert isinstance(wanted, list)
    return [str(tests / one) for one in wanted]


def main(table: Path, part: int = 1, parts: int = 1) -> int:
    """Run the table, or one of several equal parts of it; 1 where a mutant was not killed."""
    spec = tomllib.loads(table.read_text("utf-8"))
    package = ROOT / spec["package"]
    sys.path.insert(0, str(ROOT / "src"))
    for name in spec["preload"]:  # what no mutant changes is imported once for all children
        importlib.import_module(name)
    mutants = spec["mutant"][part - 1 :: parts]
    # Tests that fail anyway prove nothing: the whole suite runs them, and here one shows that a child can pass at all.
    code = run(_ids(mutants[0], table.parent), None)
    left = [] if code == 0 else [f"with every guard in place pytest ended with {code}"]
    for entry in mutants:
        found = outcome(entry, package, table.parent)
        if found != "killed":
            left.append(f"{entry['guard']}: {found}")
    print(f"{len(mutants)} guards taken away one by one, {len(left)} of them missed by no test")
    for line in left:
        print(line)
    return int(bool(left))


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).resolve(), *map(int, sys.argv[2:4])))
