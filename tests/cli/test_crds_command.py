"""`ebbtide crds`: YAML that kubectl takes, a List for scripts, a folder of files."""

from __future__ import annotations

import json
from pathlib import Path

from ruamel.yaml import YAML

DEPLOYED = Path(__file__).parents[2] / "deploy" / "crds"


def test_both_are_printed(ebbtide) -> None:
    told = ebbtide("crds")
    kinds = [one["spec"]["names"]["kind"] for one in YAML(typ="safe", pure=True).load_all(told.out)]
    assert (told.code, kinds) == (0, ["Fleet", "Schedule"])


def test_json_is_a_list_that_can_be_applied(ebbtide) -> None:
    told = ebbtide("crds", "--json")
    answer = json.loads(told.out)
    assert (answer["kind"], [one["kind"] for one in answer["items"]]) == ("List", ["CustomResourceDefinition"] * 2)


def test_files_are_the_deployed_ones(ebbtide, tmp_path: Path) -> None:
    told = ebbtide("crds", "-o", tmp_path / "crds")
    assert (told.code, told.out) == (0, "")
    assert "fleets.yaml" in told.err
    for path in DEPLOYED.iterdir():
        assert (tmp_path / "crds" / path.name).read_bytes() == path.read_bytes()
    assert ebbtide("crds", "-o", tmp_path / "crds", "--json").code == 0  # its own files may be replaced


def test_foreign_files_stay(ebbtide, tmp_path: Path) -> None:
    (tmp_path / "fleets.yaml").write_text("mine: true\n")
    told = ebbtide("crds", "-o", tmp_path)
    assert told.code == 2
    assert (tmp_path / "fleets.yaml").read_text() == "mine: true\n"
    assert not (tmp_path / "schedules.yaml").exists()
