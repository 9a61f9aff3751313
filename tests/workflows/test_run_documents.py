"""Documents while the controller runs: read again when they change, in doubt when they break, blocked when gone."""

from __future__ import annotations

import os

import pytest

from ebbtide.adapters.documents.fleet import read_fleet
from ebbtide.adapters.documents.schedule import write_schedule
from ebbtide.adapters.kubernetes.problems import ApiError, Asked, Kind
from ebbtide.errors import InputError
from ebbtide.workflows.run_documents import Documents, Files

FLEET = """\
apiVersion: ebbtide.dev/v1alpha1
kind: Fleet
metadata: {name: day-and-night}
spec:
  timeZone: Asia/Shanghai
  demand: [{name: small, file: rates.csv}]
  pools: [{name: h100, gpusPerNode: 8, nodes: 40, reservedNodes: 8}]
  workloads:
  - {name: chat, gpusPerReplica: 1, service: {time: 6s}, targets: [{wait: 2s}]}
  - {name: agents, gpusPerReplica: 2, service: {time: 8s}, targets: [{wait: 5s}]}
"""


@pytest.fixture
def files(tmp_path, schedule):
    fleet = tmp_path / "fleet.yaml"
    fleet.write_text(FLEET)
    write_schedule(tmp_path / "schedule.yaml", schedule, None)
    return tmp_path / "fleet.yaml", tmp_path / "schedule.yaml"


def edit(path, text):
    """Written beside and renamed, as editors and ConfigMap mounts do."""
    fresh = path.with_suffix(".new")
    fresh.write_text(text)
    os.replace(fresh, path)


def test_a_file_that_did_not_change_is_not_read_again(files):
    source = Files(*files)
    first = source.read()
    assert source.read() is first
    edit(files[0], FLEET.replace("nodes: 40", "nodes: 41"))
    second = source.read()
    assert (second.fleet.pool("h100").nodes, second.schedule) == (41, first.schedule)
    assert (second.problem, second.doubt, second.blocked) == (None, "", "")


@pytest.mark.parametrize("broken", ["kind: Fleet\nspec: {", "", FLEET.replace("nodes: 40", "nodez: 40")])
def test_a_document_that_broke_leaves_the_last_good_one_in_force_and_in_doubt_until_it_is_mended(files, broken):
    source = Files(*files)
    good = source.read()
    edit(files[0], broken)
    for _ in range(2):
        kept = source.read()
        assert (kept.fleet, kept.schedule, kept.blocked) == (good.fleet, good.schedule, "")
        assert "fleet.yaml" in kept.doubt
    edit(files[0], FLEET)
    mended = source.read()
    assert (mended.fleet, mended.problem, mended.doubt) == (good.fleet, None, "")


def test_a_document_that_is_gone_blocks_until_it_is_back(files):
    source = Files(*files)
    source.read()
    text = files[1].read_text()
    files[1].unlink()
    assert "schedule.yaml is gone" in source.read().blocked
    edit(files[1], text)
    assert source.read().blocked == ""


def test_at_the_start_there_is_no_last_good_one(files):
    edit(files[0], "kind: Fleet")
    with pytest.raises(InputError):
        Files(*files).read()


def test_a_home_that_does_not_answer_is_no_doubt(files):
    asked = Asked(cluster="prod", verb="list", resource="schedules.ebbtide.dev")
    problem = ApiError(Kind.UNREACHABLE, asked, "connection refused")
    assert Documents(fleet=read_fleet(files[0]).fleet, schedule=None, problem=problem).doubt == ""
