"""Read a Fleet document (DOCUMENTS §1)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ebbtide.adapters.demand.source import DemandSource
from ebbtide.adapters.documents.fleet_models import FleetForm
from ebbtide.adapters.documents.fleet_rules import fleet_problems
from ebbtide.adapters.documents.fleet_values import fleet_value, source_values
from ebbtide.adapters.documents.problems import document_errors, field_name, raise_errors
from ebbtide.adapters.documents.reading import Read, object_name, read_document, read_object
from ebbtide.errors import Place
from ebbtide.fleet.fleet import Fleet


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetDocument:
    """A Fleet, its demand sources, and where each of its fields is written (``lines``: field as in messages → line)."""

    path: Path
    fleet: Fleet
    sources: tuple[DemandSource, ...]
    lines: Mapping[str, int] = field(default_factory=dict, repr=False)

    def source(self, name: str) -> DemandSource:
        """The demand source of that name; ``KeyError`` where there is none."""
        return {source.name: source for source in self.sources}[name]

    def place(self, field_path: str) -> Place:
        """The place of a field such as ``workloads[chat].demand.key``; where it isn't written, of what holds it."""
        around = field_path
        while around and around not in self.lines:
            around = around[: max(around.rfind("."), around.rfind("["), 0)]
        return Place(file=str(self.path), line=self.lines.get(around), field=field_path)


def read_fleet(path: Path | str, *, content: bytes | None = None) -> FleetDocument:
    """The Fleet in a file, every default completed; ``content`` where its bytes were read already.

    Raises ``DocumentError`` where something is wrong with it (``DocumentErrors`` where several things are, with a line
    for each), ``InputError`` where there is no such file.
    """
    read = _read(Path(path), content)
    raise_errors(read.errors)
    assert read.form is not None  # without errors there is a form
    lines = {field_name(at, read.tree.data): line for at, line in read.tree.lines.items() if at}
    return FleetDocument(
        path=Path(path), fleet=fleet_value(read.form), sources=source_values(read.form, Path(path).parent), lines=lines
    )


def fleet_of_object(data: Mapping[str, Any]) -> Fleet:
    """The Fleet in an object as an API server gives it; its status is not read.

    Raises ``DocumentError`` as ``read_fleet`` does, with the object's name in place of a file and no line.
    """
    read = _ruled(read_object(data, FleetForm, kind="Fleet", file=object_name(data)))
    raise_errors(read.errors)
    assert read.form is not None  # without errors there is a form
    return fleet_value(read.form)


def _read(path: Path, content: bytes | None) -> Read[FleetForm]:
    return _ruled(read_document(path, FleetForm, kind="Fleet", content=content))


def _ruled(read: Read[FleetForm]) -> Read[FleetForm]:
    if read.form is None:
        return read
    errors = document_errors(fleet_problems(read.form.spec), read.tree, read.file)
    return Read(file=read.file, tree=read.tree, form=read.form, errors=tuple(errors))
