"""Structured log lines on stderr: JSON for machines, plain for a terminal. No header, token or password is in one."""

from __future__ import annotations

import sys
from typing import Any

import structlog


def open_log(*, json: bool | None = None) -> Any:
    """The log; JSON unless stderr is a terminal (or as said)."""
    as_json = not sys.stderr.isatty() if json is None else json
    last: Any = structlog.processors.JSONRenderer(ensure_ascii=False) if as_json else structlog.dev.ConsoleRenderer()
    return structlog.wrap_logger(
        structlog.PrintLogger(sys.stderr),
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            last,
        ],
    )
