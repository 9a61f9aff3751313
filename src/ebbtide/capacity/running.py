"""Whether what runs is what a claim was measured on and with.

What belongs here: the comparison, field by field, with "not observed" as an answer. What doesn't: where it is read
(``adapters.kubernetes``).
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ebbtide.fleet.fingerprint import Fingerprint


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """What the pods of a workload run, and on what, each value once; empty where nothing says it.

    ``arguments``: command and arguments of the container that takes the GPUs; ``gpus``: how many it takes.
    """

    pods: int = 0
    image_digests: tuple[str, ...] = ()
    arguments: tuple[tuple[str, ...], ...] = ()
    gpus: tuple[int, ...] = ()
    gpu_models: tuple[str, ...] = ()
    drivers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """One field of the claim beside what runs; ``running`` None: not observed, so ``same`` says nothing."""

    field: str
    claimed: str
    running: str | None
    same: bool


def compared(claim: Fingerprint, running: Running, *, replicas: int) -> tuple[Compared, ...]:
    """Every field that the claim says, of ``replicas`` measured together, beside what runs.

    >>> claim = Fingerprint(gpu_model="NVIDIA H100 80GB HBM3", image_digest="sha256:1")
    >>> running = Running(gpu_models=("NVIDIA-H100-80GB-HBM3",), image_digests=("sha256:1", "sha256:2"))
    >>> [(one.field, one.same) for one in compared(claim, running, replicas=1)]
    [('gpu_model', True), ('image_digest', False)]
    """
    return tuple(_compared(claim, running, replicas))


def _compared(claim: Fingerprint, running: Running, replicas: int) -> Iterator[Compared]:
    if claim.gpu_model is not None:
        same = {_plain(one) for one in running.gpu_models} == {_plain(claim.gpu_model)}
        yield _field("gpu_model", claim.gpu_model, running.gpu_models, same)
    if claim.gpus is not None:
        of_one = claim.gpus / replicas
        yield _field("gpus", f"{of_one:g} a replica", running.gpus, set(running.gpus) == {of_one})
    if claim.driver is not None:
        yield _field("driver", claim.driver, running.drivers, set(running.drivers) == {claim.driver})
    if claim.image_digest is not None:
        digests = set(running.image_digests) == {claim.image_digest.rpartition("@")[2]}
        yield _field("image_digest", claim.image_digest, running.image_digests, digests)
    wanted = options(split_flags(claim.flags or ""))
    if claim.flags is not None and wanted:
        found = [options(one) for one in running.arguments]
        shown = [" ".join(_shown(one, wanted)) or "as claimed" for one in found]
        yield _field("flags", claim.flags, shown, all(one == wanted for one in found))


def _field(name: str, claimed: str, seen: Sequence[object], same: bool) -> Compared:
    running = ", ".join(dict.fromkeys(str(one) for one in seen)) or None
    return Compared(field=name, claimed=claimed, running=running, same=same and running is not None)


def _shown(found: dict[str, str], wanted: dict[str, str]) -> Iterator[str]:
    """What differs: other values, what is more, and what is less."""
    for name in dict.fromkeys((*found, *wanted)):
        if found.get(name) != wanted.get(name):
            yield f"{name} {found[name]}".strip() if name in found else f"(no {name})"


def split_flags(text: str) -> tuple[str, ...]:
    """Flags as a shell would split them; as words where it would not.

    >>> split_flags('--tp 2 --name "a b"'), split_flags("it's")
    (('--tp', '2', '--name', 'a b'), ("it's",))
    """
    try:
        return tuple(shlex.split(text))
    except ValueError:
        return tuple(text.split())


def options(words: Sequence[str]) -> dict[str, str]:
    """Options by name, each with its value ("" without one), whatever their order and however they are joined.

    What stands before the first option is the program; underscores and dashes are the same, as to most of them.

    >>> options(["serve", "model", "--tp=2", "--enforce-eager", "--max_num_seqs", "64"])
    {'--tp': '2', '--enforce-eager': '', '--max-num-seqs': '64'}
    """
    found: dict[str, str] = {}
    name = ""
    for word in words:
        if re.match(r"--?[A-Za-z]", word):
            name, joined, value = word.partition("=")
            name = name.replace("_", "-")
            found[name] = value
            name = "" if joined else name
        elif name:
            found[name] = f"{found[name]} {word}".strip()
    return found


def _plain(model: str) -> str:
    """A GPU's name without what its tellers write differently.

    >>> _plain("NVIDIA H100 80GB HBM3") == _plain("nvidia-h100-80gb-hbm3")
    True
    """
    return re.sub(r"[^a-z0-9]+", "-", model.lower()).strip("-")
