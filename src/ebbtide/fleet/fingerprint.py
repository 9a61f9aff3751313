"""What a service runs on and with: hardware and settings, as a claim has them or a Fleet expects them (§M.8)."""

from __future__ import annotations

from dataclasses import dataclass, fields


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """A field in which two fingerprints differ; ``found`` None is unknown."""

    field: str
    expected: str | int
    found: str | int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Fingerprint:
    """What a claim is true of; None is unknown, which matches nothing that is expected."""

    gpu_model: str | None = None
    gpus: int | None = None
    driver: str | None = None
    image_digest: str | None = None
    model_revision: str | None = None
    flags: str | None = None

    def differences(self, expected: Fingerprint) -> tuple[Difference, ...]:
        """The fields that are not what is expected; what the expectation leaves open can't differ.

        >>> seen = Fingerprint(gpu_model="H100", model_revision="r2")
        >>> [one.field for one in seen.differences(Fingerprint(gpu_model="H100", model_revision="r1", driver="550"))]
        ['driver', 'model_revision']
        """
        pairs = [(one.name, getattr(expected, one.name), getattr(self, one.name)) for one in fields(self)]
        return tuple(
            Difference(field=name, expected=wanted, found=found)
            for name, wanted, found in pairs
            if wanted is not None and wanted != found
        )
