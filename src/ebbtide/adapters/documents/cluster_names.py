"""How Kubernetes names things: the kinds of text by which a document speaks of objects in a cluster."""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, Field

from ebbtide.adapters.documents.quantities import refused, shown

LABEL_KEY = r"^([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$"


def _no_address(text: str) -> str:
    if "://" in text:
        raise refused("address_in_document", f"is {shown(text)}: no address belongs in a document; name the context")
    return text


ObjectName = Annotated[str, Field(max_length=253, pattern=r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$")]
ContextName = Annotated[str, Field(min_length=1, max_length=253), AfterValidator(_no_address)]
ApiVersionText = Annotated[str, Field(max_length=253, pattern=r"^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?v[0-9][a-z0-9]*$")]
KindName = Annotated[str, Field(max_length=63, pattern=r"^[A-Z][A-Za-z0-9]*$")]
ResourceName = Annotated[str, Field(max_length=317, pattern=LABEL_KEY)]
LabelValue = Annotated[str, Field(max_length=63, pattern=r"^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$")]
HttpPath = Annotated[str, Field(max_length=253, pattern=r"^/[-A-Za-z0-9._~/]*$")]
