"""The custom resources Fleet and Schedule: CRDs generated from the documents' models (apiextensions v1).

``python -m ebbtide.adapters.documents.crds deploy/crds`` writes them anew; a test compares. A file and a custom
resource are the same document: what an API server takes is read, and what the reader takes is taken by the server,
save for ``null`` where a field can as well be left out.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ebbtide.adapters.documents.crd_rules import RULES
from ebbtide.adapters.documents.emit import scalar
from ebbtide.adapters.documents.files import Output, make_folder, refuse_foreign, write_together
from ebbtide.adapters.documents.schema import json_schema
from ebbtide.adapters.documents.structural import structural

GROUP, VERSION = "ebbtide.dev", "v1alpha1"
_MARK = "# written by ebbtide: `ebbtide crds`, from the documents' models"


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column of `kubectl get`; those of priority 1 are shown with `-o wide`."""

    name: str
    path: str
    meaning: str
    type: str = "string"
    priority: int = 0

    def plain(self) -> dict[str, Any]:
        """As a CRD writes it."""
        found: dict[str, Any] = {"name": self.name, "type": self.type, "jsonPath": self.path}
        return found | {"description": self.meaning} | ({"priority": self.priority} if self.priority else {})


AGE = Column(name="Age", path=".metadata.creationTimestamp", meaning="Since when it is there.", type="date")
COLUMNS = {
    "Fleet": (
        Column(name="Pools", path=".status.poolNames", meaning="The pools."),
        Column(name="Nodes", path=".status.nodes", meaning="Nodes by side."),
        Column(name="Mode", path=".status.mode", meaning="Whether the controller acts."),
        Column(name="Asked mode", path=".spec.mode", meaning="The mode that the spec names.", priority=1),
        AGE,
    ),
    "Schedule": (
        Column(name="Window", path=".status.window", meaning="The window in force."),
        Column(name="Next change", path=".status.nextChange", meaning="When the next one begins."),
        Column(name="Phase", path=".status.phase", meaning="What is being done."),
        Column(name="Shortage", path=".status.shortage", meaning="Who goes short."),
        Column(name="Valid until", path=".spec.validUntil", meaning="After it nothing is yielded.", priority=1),
        Column(name="Fleet", path=".spec.fleet.name", meaning="The Fleet it was made for.", priority=1),
        AGE,
    ),
}
SHORT_NAMES = {"Fleet": ["flt"], "Schedule": ["ebbsched"]}


def crd(kind: str) -> dict[str, Any]:
    """The CustomResourceDefinition of a kind of document, as plain values. Errors as ``json_schema``.

    >>> crd("Fleet")["metadata"]["name"]
    'fleets.ebbtide.dev'
    """
    plural = f"{kind.lower()}s"
    names = {
        "plural": plural,
        "singular": kind.lower(),
        "kind": kind,
        "listKind": f"{kind}List",
        "shortNames": SHORT_NAMES[kind],
        "categories": ["ebbtide"],
    }
    version = {
        "name": VERSION,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": openapi_schema(kind)},
        "subresources": {"status": {}},
        "additionalPrinterColumns": [column.plain() for column in COLUMNS[kind]],
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{GROUP}"},
        "spec": {"group": GROUP, "scope": "Namespaced", "names": names, "versions": [version]},
    }


def openapi_schema(kind: str) -> dict[str, Any]:
    """The structural schema of a kind of document; its metadata is the server's, but for the name's form."""
    schema = json_schema(kind)
    defs = schema["$defs"]
    found = structural({key: value for key, value in schema.items() if key != "$defs"}, defs, RULES)
    name = structural(defs["Metadata"]["properties"]["name"], defs, RULES)
    fields = found["properties"]
    fields["apiVersion"] = {"type": "string"}
    fields["kind"] = {"type": "string"}
    form = {key: value for key, value in name.items() if key != "description"}
    fields["metadata"] = {"type": "object", "properties": {"name": form}}
    found["required"] = [name for name in found["required"] if name == "spec"]
    return found


def crd_text(kind: str) -> str:
    """The CRD as YAML, one entry a line."""
    return f"{_MARK}\n" + "\n".join(_lines(crd(kind), "")) + "\n"


def crd_files(folder: Path) -> tuple[Output, ...]:
    """All CRDs as files of a folder."""
    return tuple(
        Output(path=folder / f"{kind.lower()}s.yaml", content=crd_text(kind).encode()) for kind in sorted(COLUMNS)
    )


def write_crds(folder: Path) -> tuple[Path, ...]:
    """Write the CRDs to a folder, made where there is none; the paths.

    Raises ``InputError`` where a file stands that ebbtide did not write, ``PermanentError`` where the system refuses.
    """
    make_folder(folder)
    outputs = crd_files(folder)
    for output in outputs:
        refuse_foreign(output.path)
    write_together(outputs)
    return tuple(output.path for output in outputs)


def _lines(value: dict[str, Any], indent: str) -> list[str]:
    lines: list[str] = []
    for key, item in value.items():
        head = f"{indent}{_key(key)}:"
        if isinstance(item, dict) and item:
            lines += [head, *_lines(item, indent + "  ")]
        elif isinstance(item, list) and item and isinstance(item[0], dict):
            lines.append(head)
            for one in item:
                first, *rest = _lines(one, indent + "  ")
                lines += [f"{indent}- {first.lstrip()}", *rest]
        else:
            lines.append(f"{head} {_flow(item)}")
    return lines


def _key(key: str) -> str:
    return scalar(key)


def _flow(item: Any) -> str:
    if isinstance(item, dict):
        return "{}"
    if isinstance(item, list):
        return f"[{', '.join(scalar(one) for one in item)}]"
    return scalar(item)


if __name__ == "__main__":
    write_crds(Path(sys.argv[1]))
