"""Read and write a CapacityClaim document (DOCUMENTS §3)."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ebbtide.adapters.documents.claim_models import ClaimForm, ClaimSpec, ProfileSpec
from ebbtide.adapters.documents.claim_values import claim_plain, claim_value
from ebbtide.adapters.documents.emit import block
from ebbtide.adapters.documents.files import MARK, Output
from ebbtide.adapters.documents.problems import Problem, document_errors, field_name, one_of, raise_errors
from ebbtide.adapters.documents.reading import document_bytes, read_document
from ebbtide.adapters.documents.target import live_problems
from ebbtide.adapters.documents.target_values import bounds_of
from ebbtide.capacity.claim import CapacityClaim
from ebbtide.errors import Place

_OPEN = frozenset({"spec"})


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimDocument:
    """A checked claim, where it lies and the digest of its file (``lines``: field as in messages → line)."""

    path: Path
    claim: CapacityClaim
    sha256: str
    lines: Mapping[str, int] = field(default_factory=dict, repr=False)

    def place(self, field_path: str) -> Place:
        """The place of a field such as ``hardware.gpuModel``; where it isn't written, of what holds it."""
        around = field_path
        while around and around not in self.lines:
            around = around[: max(around.rfind("."), around.rfind("["), 0)]
        return Place(file=str(self.path), line=self.lines.get(around), field=field_path)


def read_claim(path: Path | str, *, content: bytes | None = None) -> ClaimDocument:
    """The claim in a file; ``content`` where its bytes were read already.

    Raises ``DocumentError`` where something is wrong with it, ``InputError`` where there is no such file.
    """
    path = Path(path)
    content = document_bytes(path) if content is None else content
    read = read_document(path, ClaimForm, kind="CapacityClaim", content=content)
    raise_errors(read.errors)
    assert read.form is not None  # without errors there is a form
    raise_errors(document_errors(claim_problems(read.form.spec), read.tree, read.file))
    return ClaimDocument(
        path=path,
        claim=claim_value(read.form.metadata.name, read.form.spec),
        sha256="sha256:" + hashlib.sha256(content).hexdigest(),
        lines={field_name(at, read.tree.data): line for at, line in read.tree.lines.items() if at},
    )


def claim_output(path: Path, claim: CapacityClaim, *, by: str = "measure") -> Output:
    """The claim's file, ready to be written with others; what is written is what ``read_claim`` takes.

    ``by``: the command that its first line names.
    """
    plain = claim_plain(claim)
    ClaimForm.model_validate(plain)
    head = f"# {MARK.decode()} {by}\n"
    return Output(path=path, content=(head + block(plain, open_keys=_OPEN)).encode())


def claim_problems(spec: ClaimSpec) -> Iterator[Problem]:
    """Everything that is wrong between the fields of a claim."""
    if spec.valid_until <= spec.measured_at:
        message = f"is {spec.valid_until}, not after measuredAt, {spec.measured_at}"
        yield Problem(path=("spec", "validUntil"), kind="out_of_range", message=message)
    held = spec.sustained
    if held.high_rps is not None and held.high_rps < held.low_rps:
        message = f"is {held.high_rps:g}, below lowRps, {held.low_rps:g}"
        yield Problem(path=("spec", "sustained", "highRps"), kind="out_of_range", message=message)
    for index, bound in enumerate(spec.targets):
        yield from one_of(("spec", "targets", index), bounds_of(bound))
    if spec.quality is not None and spec.quality.high < spec.quality.low:
        message = f"is {spec.quality.high:g}, below low, {spec.quality.low:g}"
        yield Problem(path=("spec", "quality", "high"), kind="out_of_range", message=message)
    yield from _profile(spec.profile)
    yield from live_problems(spec.live, len(spec.targets))


def _profile(profile: ProfileSpec) -> Iterator[Problem]:
    rows, root = len(profile.concurrency), ("spec", "profile")
    for name, column in (("throughputRps", profile.throughput_rps), ("latency", profile.latency)):
        if len(column) != rows:
            message = f"has {len(column)} values, concurrency {rows}: one for each is needed"
            yield Problem(path=(*root, name), kind="out_of_range", message=message)
    if any(later <= earlier for earlier, later in zip(profile.concurrency, profile.concurrency[1:], strict=False)):
        yield Problem(path=(*root, "concurrency"), kind="out_of_range", message="does not ascend")
