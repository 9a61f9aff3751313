"""Endpoints and credentials: read once from the environment, never from documents.

What belongs here: names of environment variables and their values. What doesn't: anything that a Fleet may say.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What the environment says, None where it says nothing.

    ``sql_url`` names the engine for demand tables; ``context_production`` and ``context_research`` contexts of the
    kubeconfig that override the Fleet's.
    """

    sql_url: str | None
    prometheus_url: str | None = None
    prometheus_token_file: Path | None = None
    context_production: str | None = None
    context_research: str | None = None


def read_settings(environment: Mapping[str, str] | None = None) -> Settings:
    """The settings in the environment (or in the given one); empty text counts as nothing.

    >>> read_settings({"EBBTIDE_SQL_URL": "duckdb://demand.db"}).sql_url
    'duckdb://demand.db'
    """
    given = os.environ if environment is None else environment
    token_file = given.get("EBBTIDE_PROMETHEUS_TOKEN_FILE")
    return Settings(
        sql_url=given.get("EBBTIDE_SQL_URL") or None,
        prometheus_url=given.get("EBBTIDE_PROMETHEUS_URL") or None,
        prometheus_token_file=Path(token_file) if token_file else None,
        context_production=given.get("EBBTIDE_CONTEXT_PRODUCTION") or None,
        context_research=given.get("EBBTIDE_CONTEXT_RESEARCH") or None,
    )
