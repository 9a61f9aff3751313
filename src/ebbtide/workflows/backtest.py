"""`ebbtide backtest`: real demand replayed under ebbtide and other policies, scored on one page."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from ebbtide.adapters.documents.files import Output, make_folder, refuse_foreign, write_together
from ebbtide.adapters.documents.fleet import read_fleet
from ebbtide.adapters.report.backtest import render_backtest_page
from ebbtide.errors import InputError
from ebbtide.settings import read_settings
from ebbtide.workflows.allocate import silent
from ebbtide.workflows.backtest_page import page_of
from ebbtide.workflows.backtest_trial import EBBTIDE, RIVALS, TROUBLES, Trial
from ebbtide.workflows.claims import refuse_claims
from ebbtide.workflows.demand import Stage, read_demand
from ebbtide.workflows.reach import refuse_latency_below_service
from ebbtide.workflows.replay import Backtested, backtested


def backtest(
    fleet_file: Path,
    folder: Path | None = None,
    *,
    against: tuple[str, ...] = RIVALS,
    seed: int = 1,
    days: int | None = None,
    troubles: str = "none",
    stage: Stage = silent,
) -> Backtested:
    """Replay the demand of the fleet in ``fleet_file``; with a ``folder`` write ``backtest.html`` there.

    ``days`` None: all that can be tested, or the last of them where those have too many requests for a short answer.

    Raises ``InputError`` for a wrong document, a policy that there is not, demand of less than two whole days, or a
    file there that ebbtide did not write.
    """
    unknown = [name for name in against if name not in RIVALS]
    if unknown:
        hint = f"{'it always takes part; ' if unknown[0] == EBBTIDE else ''}there are {', '.join(RIVALS)}"
        raise InputError(f'no rival is named "{unknown[0]}"', kind="unknown_policy", hint=hint)
    if troubles not in TROUBLES:
        raise InputError(
            f'no troubles are named "{troubles}"', kind="unknown_troubles", hint=f"there are {', '.join(TROUBLES)}"
        )
    page = (folder or Path()) / "backtest.html"
    if folder is not None:
        refuse_foreign(page)
    document = read_fleet(fleet_file)
    refuse_claims(document)
    demand = read_demand(document, sql_url=read_settings().sql_url, stage=stage)
    refuse_latency_below_service(document, demand.series)
    found = backtested(
        document.fleet, demand, Trial(against=against, seed=seed, troubles=troubles, stage=stage), days=days
    )
    if folder is None:
        return found
    stage("writing", 0, 1)
    make_folder(folder)
    write_together([Output(path=page, content=render_backtest_page(page_of(found)).encode())])
    return replace(found, written=(page,))
