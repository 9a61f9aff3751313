"""The process in which a user's Python checker runs: ``python -m ebbtide.adapters.load.checker_host module:function``.

Reads one JSON map {request, answer, expected} a line, writes {"right": bool} or {"problem": text} a line. What the
checker prints goes to stderr, so that it can't be taken for an answer.
"""

from __future__ import annotations

import importlib
import json
import os
import sys


def main(entry: str) -> int:
    """Until stdin ends."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    sys.path.insert(0, os.getcwd())
    module, _, name = entry.partition(":")
    try:
        check = getattr(importlib.import_module(module), name)
    except Exception as problem:
        print(
            json.dumps({"problem": f"{type(problem).__name__}: {problem}", "missing": True}), file=answers, flush=True
        )
        return 1
    print(json.dumps({"ready": True}), file=answers, flush=True)
    for line in sys.stdin:
        asked = json.loads(line)
        try:
            said: dict[str, object] = {"right": bool(check(asked["request"], asked["answer"], asked["expected"]))}
        except Exception as problem:
            said = {"problem": f"{type(problem).__name__}: {problem}"}
        print(json.dumps(said), file=answers, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
