"""Write and read a Schedule document (DOCUMENTS §2)."""

from __future__ import annotations

import gzip
import hashlib
import json
import zlib
from collections.abc import Mapping
from importlib.metadata import version as version_of
from io import BytesIO
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from ebbtide.adapters.documents.emit import block
from ebbtide.adapters.documents.files import MARK, Output, is_ours, read_bytes, refuse_foreign, write_together
from ebbtide.adapters.documents.findings import validation_problems
from ebbtide.adapters.documents.fresh_files import sweep
from ebbtide.adapters.documents.memory_document import memory_of
from ebbtide.adapters.documents.problems import document_errors, raise_errors
from ebbtide.adapters.documents.reading import Read, object_name, read_document, read_object
from ebbtide.adapters.documents.schedule_models import (
    ColumnsFileSpec,
    ReasonColumnsSpec,
    ReasonsForm,
    ScheduleForm,
)
from ebbtide.adapters.documents.schedule_plain import explanation_plain, reasons_plain, schedule_plain
from ebbtide.adapters.documents.schedule_rules import reasons_problems, schedule_problems
from ebbtide.adapters.documents.schedule_values import explanation_value, schedule_value
from ebbtide.adapters.documents.yaml_text import Tree
from ebbtide.control.memory import Memory
from ebbtide.errors import DocumentError, InputError, Place
from ebbtide.fleet.schedule import Explanation, Schedule

ALL_INSIDE_BYTES = 200_000  # up to here a person can still read the whole document
_MOST_INSIDE = 3_200  # workloads × windows: 21 columns of 3 characters each are beyond 200 kB in any case
MOST_BYTES = 1_400_000  # an API server took 1.4 MB and refused 1.6
MOST_COLUMNS_BYTES = 200_000_000  # unzipped: 2,000 workloads × 336 windows × 17 columns are 70 MB
_OPEN = frozenset({"spec", "explanation", "provenance"})


def write_schedule(path: Path | str, schedule: Schedule, explanation: Explanation | None) -> tuple[Path, ...]:
    """Write a schedule, and beside it its explanation's columns where they are too long; the paths that were written.

    Raises ``InputError`` as ``schedule_outputs`` does; nothing is written then.
    """
    outputs = schedule_outputs(path, schedule, explanation)
    write_together(outputs)
    forget_columns(outputs)
    return tuple(output.path for output in outputs)


def schedule_outputs(path: Path | str, schedule: Schedule, explanation: Explanation | None) -> tuple[Output, ...]:
    """What ``write_schedule`` writes, for those who write more files in the same step (``files.write_together``).

    Raises ``InputError``: ``foreign_output`` where a file stands that ebbtide did not write, ``schedule_too_large``
    above 1.4 MB.
    """
    path = Path(path)
    plain = schedule_plain(schedule)
    reasons = [] if explanation is None else reasons_plain(explanation)
    if explanation is not None:
        plain["explanation"] = {**explanation_plain(explanation), "workloads": reasons}
    mark = _mark(schedule, explanation)
    outputs: tuple[Output, ...] = ()
    if len(reasons) * len(schedule.windows) <= _MOST_INSIDE:
        outputs = (Output(path=path, content=_text(mark, plain)),)
    if not outputs or len(outputs[0].content) > ALL_INSIDE_BYTES:
        outputs = _apart(path, mark, plain, reasons)
    _check_size(outputs[0])
    for output in outputs:
        refuse_foreign(output.path)
    return outputs


def forget_columns(outputs: tuple[Output, ...]) -> None:
    """Remove the columns file of an earlier schedule, once one without it stands in its place."""
    stale = _columns_path(outputs[0].path)
    if len(outputs) == 1:
        sweep(stale)
        if stale.is_file() and is_ours(stale):
            stale.unlink()


def read_schedule(
    path: Path | str, *, explained: bool = True, content: bytes | None = None
) -> tuple[Schedule, Explanation | None]:
    """The schedule in a file and its explanation, None where the document has none (or ``explained`` is False).

    ``content``: its bytes where they were read already.

    Raises ``DocumentError`` where something is wrong with it (``DocumentErrors`` where several things are, with a line
    for each), ``InputError`` where there is no such file.
    """
    read = _read(Path(path), content)
    raise_errors(read.errors)
    assert read.form is not None  # without errors there is a form
    spec = read.form.explanation
    if spec is None or not explained:
        return schedule_value(read.form), None
    columns = spec.workloads
    if spec.columns is not None:
        columns = _read_columns(Path(path), spec.columns, len(read.form.spec.windows))
    return schedule_value(read.form), explanation_value(spec, columns)


def schedule_of_object(data: Mapping[str, Any], *, version: int = 0) -> tuple[Schedule, Memory]:
    """The schedule in an object as an API server gives it, and the controller's memory in its status (empty where it
    has none), whose ``version`` is the object's. The explanation is not looked at.

    Raises ``DocumentError`` as ``read_schedule`` does, with the object's name in place of a file and no line.
    """
    kept = {name: value for name, value in data.items() if name != "explanation"}
    read = _ruled(read_object(kept, ScheduleForm, kind="Schedule", file=object_name(data)))
    raise_errors(read.errors)
    assert read.form is not None  # without errors there is a form
    status = read.form.status
    if status is None or status.memory is None:
        return schedule_value(read.form), Memory(version=version)
    return schedule_value(read.form), memory_of(status.memory, version=version)


def _read(path: Path, content: bytes | None) -> Read[ScheduleForm]:
    return _ruled(read_document(path, ScheduleForm, kind="Schedule", content=content))


def _ruled(read: Read[ScheduleForm]) -> Read[ScheduleForm]:
    if read.form is None:
        return read
    errors = document_errors(schedule_problems(read.form), read.tree, read.file)
    return Read(file=read.file, tree=read.tree, form=read.form, errors=tuple(errors))


def _mark(schedule: Schedule, explanation: Explanation | None) -> str:
    by = version_of("ebbtide") if explanation is None else explanation.provenance.version
    return f"{MARK.decode()} {by} for fleet {schedule.fleet_name}"


def _text(mark: str, plain: dict[str, Any], *, tight: bool = False) -> bytes:
    return f"# {mark}: edit with care\n{block(plain, open_keys=_OPEN, tight=tight)}".encode()


def _apart(path: Path, mark: str, plain: dict[str, Any], reasons: list[dict[str, Any]]) -> tuple[Output, ...]:
    """The schedule with its explanation's columns in a file of their own."""
    if not reasons:
        return (Output(path=path, content=_text(mark, plain, tight=True)),)
    columns = json.dumps({"writtenBy": mark, "workloads": reasons}, separators=(",", ":"), allow_nan=False)
    content = gzip.compress(columns.encode(), mtime=0)  # without the time the same plan gives the same bytes
    beside = _columns_path(path)
    del plain["explanation"]["workloads"]
    plain["explanation"]["columns"] = {"file": beside.name, "sha256": hashlib.sha256(content).hexdigest()}
    return Output(path=path, content=_text(mark, plain, tight=True)), Output(path=beside, content=content)


def _columns_path(path: Path) -> Path:
    return path.with_name(f"{path.stem}.explanation.json.gz")


def _check_size(output: Output) -> None:
    if len(output.content) > MOST_BYTES:
        raise InputError(
            f"the schedule takes {len(output.content):,} bytes; Kubernetes takes at most {MOST_BYTES:,}",
            kind="schedule_too_large",
            place=Place(file=str(output.path)),
            hint="plan fewer windows, or split the Fleet",
        )


def _read_columns(path: Path, spec: ColumnsFileSpec, windows: int) -> list[ReasonColumnsSpec]:
    """The columns file beside a schedule, checked against the digest that the schedule holds."""
    beside = path.with_name(spec.file)
    content = read_bytes(beside, at_most=MOST_COLUMNS_BYTES)
    place = Place(file=str(beside))
    if hashlib.sha256(content).hexdigest() != spec.sha256:
        raise DocumentError(
            "is not the file that the schedule names: the digests differ",
            kind="columns_digest",
            place=place,
            hint="write both anew with `ebbtide allocate`",
        )
    try:
        data = json.loads(_unzipped(content))
        form = ReasonsForm.model_validate(data)
    except (OSError, EOFError, zlib.error, ValueError, RecursionError) as problem:
        if isinstance(problem, ValidationError):
            tree = Tree(data=data)
            raise_errors(document_errors(validation_problems(problem, ReasonsForm), tree, str(beside)))
        raise DocumentError(f"is damaged: {problem}", kind="damaged_file", place=place) from problem
    wrong = document_errors(reasons_problems(form.workloads, windows, ("workloads",)), Tree(data=data), str(beside))
    raise_errors(wrong)
    return form.workloads


def _unzipped(content: bytes) -> bytes:
    with gzip.GzipFile(fileobj=BytesIO(content)) as file:
        text = file.read(MOST_COLUMNS_BYTES + 1)
    if len(text) > MOST_COLUMNS_BYTES:
        raise ValueError(f"more than {MOST_COLUMNS_BYTES:,} bytes when unzipped")
    return text
