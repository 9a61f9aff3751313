"""A part of the ServeGen study: two services, one held-out day, by the study's own code."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from ebbtide.forecast.seasonal import Margin

FILE = Path(__file__).parents[2] / "benchmarks" / "servegen.py"
DAY = range(9, 10)


@pytest.fixture(scope="module")
def study() -> ModuleType:
    spec = importlib.util.spec_from_file_location("servegen", FILE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


def test_the_outages_of_the_trace_are_found_and_their_burstiness_is_not_believed(study: ModuleType) -> None:
    series = study.services()
    assert {key: int((~one.observed).sum()) for key, one in series.items()} == {
        key: 37 if key.startswith("m-small") else 0 for key in study.KEYS
    }
    assert np.nanmax(series["m-small/c5"].arrival_scv) > 1e5
    assert study.arrival_scv(series["m-small/c5"]).max() < 400
    for one in series.values():
        assert np.nanmean(one.rate_rps) * study.SERVICE_TIME_S == pytest.approx(60.0)


def test_two_services_on_a_held_out_day_hold_as_static_does_for_less(study: ModuleType) -> None:
    two = study.Study({key: study.services()[key] for key in ("m-small/c8", "m-large/c48")}, DAY)
    plans = {
        "static": two.static(),
        "tuned": two.tuned("tuned"),
        "none": two.fixed(Margin()),
    }
    static, tuned, none = two.simulate(plans, seed=1)
    assert tuned.held_share >= static.held_share - 0.01
    assert tuned.within_share >= 0.97
    assert tuned.replica_hours < static.replica_hours  # these two are the steady ones
    assert none.replica_hours < tuned.replica_hours
    assert tuned.requests["m-small/c8"].shape == (1, 12)
    assert all(policy.requests["m-small/c8"].sum() == static.requests["m-small/c8"].sum() for policy in (tuned, none))


def test_nothing_after_the_day_before_changes_a_plan(study: ModuleType) -> None:
    one = study.services()["m-large/c56"]
    spoiled = one.rate_rps.copy()
    spoiled[DAY.start * 144 :] *= 50.0
    told = {"m-large/c56": study.replace(one, rate_rps=spoiled)}
    plans = [study.Study(known, DAY).tuned("tuned")["m-large/c56"] for known in ({"m-large/c56": one}, told)]
    assert np.array_equal(*plans)
