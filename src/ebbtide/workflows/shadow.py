"""`ebbtide backtest --shadow`: the schedule against what really ran, out of a controller's record."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ebbtide.adapters.documents.fleet import read_fleet
from ebbtide.errors import InputError, Place
from ebbtide.simulate.shadow import ShadowScore, score
from ebbtide.workflows.shadow_record import read_looks


def shadow(fleet_file: Path, records: Sequence[Path]) -> tuple[ShadowScore, int]:
    """The score, and how many lines were left out because they were recorded with another Fleet.

    Raises ``InputError`` for a wrong document or record, or where no two looks of this Fleet are there.
    """
    fleet = read_fleet(fleet_file).fleet
    looks, others = read_looks(records, fleet_digest=fleet.digest)
    if len(looks) < 2:
        less = f"; {others} lines were recorded with another Fleet than this one" if others else ""
        raise InputError(
            f"holds {len(looks)} looks, and two are needed{less}",
            kind="no_looks",
            place=Place(file=str(records[0])),
            hint="let `ebbtide run --record FILE` run for a day",
        )
    return score(looks, {pool.name: pool.gpus_per_node for pool in fleet.pools}), others
