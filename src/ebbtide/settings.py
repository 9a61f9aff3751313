"""Endpoints and credentials: read once from the environment, never from documents.

What belongs here: names of environment variables and their values. What doesn't: anything that a Fleet may say.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What the environment says. ``sql_url`` names the engine for demand tables; None where it says nothing."""

    sql_url: str | None


def read_settings(environment: Mapping[str, str] | None = None) -> Settings:
    """The settings in the environment (or in the given one); empty text counts as nothing.

    >>> read_settings({"EBBTIDE_SQL_URL": "duckdb://demand.db"}).sql_url
    'duckdb://demand.db'
    """
    given = os.environ if environment is None else environment
    return Settings(sql_url=given.get("EBBTIDE_SQL_URL") or None)
