"""Asynchronous work from code that is not: in a thread of its own, since a caller may have a loop running already."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

Found = TypeVar("Found")


def run_apart(work: Coroutine[Any, Any, Found]) -> Found:
    """What the work returns or raises; a Ctrl-C meanwhile cancels it.

    >>> async def five() -> int:
    ...     return 5
    >>> run_apart(five())
    5
    """
    found: list[Found] = []
    problems: list[BaseException] = []
    loop = asyncio.new_event_loop()
    task = loop.create_task(work)

    def run() -> None:
        asyncio.set_event_loop(loop)
        try:
            found.append(loop.run_until_complete(task))
        except BaseException as problem:
            problems.append(problem)
        finally:
            loop.run_until_complete(loop.shutdown_asyncgens())
            loop.close()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        thread.join()
    except BaseException:
        loop.call_soon_threadsafe(task.cancel)
        thread.join()
        raise
    if problems:
        raise problems[0]
    return found[0]
