"""The Target document's models: what `ebbtide measure` sends where, and what must hold."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from ebbtide.adapters.documents.model import Document, DocumentModel, described
from ebbtide.adapters.documents.quantities import Percentile, PositiveDuration, WholeSeconds

MAX_REQUESTS = 1_000_000_000
MAX_RATE = 1_000_000
HeaderName = Annotated[str, Field(pattern=r"^[A-Za-z0-9!#$%&'*+.^_`|~-]+$", max_length=128)]
HeaderText = Annotated[str, Field(pattern=r"^[\x20-\x7e]*$", max_length=4_096)]
VariableName = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$", max_length=128)]
MeasuredShare = Annotated[float, Field(gt=0, lt=1)]


class TokenSpec(DocumentModel):
    """Where a credential is; never the credential itself. One of env and file."""

    env: VariableName | None = described("The environment variable that holds it.", default=None, completed="none")
    file: str | None = described(
        "The file that holds it, relative to here.", default=None, completed="none", min_length=1
    )
    header: HeaderName = described("The header that carries it.", default="Authorization")
    scheme: str = described("What stands before it in the header.", default="Bearer", pattern="^[A-Za-z0-9_-]*$")


class TlsSpec(DocumentModel):
    """How the server proves who it is."""

    ca_file: str | None = described(
        "Certificates of its authority (PEM), relative to here.", default=None, completed="the system's", min_length=1
    )
    verify: bool = described("Whether it must prove it.", default=True)


class EndpointSpec(DocumentModel):
    """One address and how it is spoken to."""

    url: str = described("The whole address, with http:// or https://.", min_length=1, max_length=2_048)
    api: Literal["chat", "completions", "embeddings", "http"] = described(
        "OpenAI's form of requests and answers, or any HTTP.", default="chat"
    )
    model: str | None = described(
        "The model that requests name.", default=None, completed="the endpoint's only one", min_length=1
    )
    stream: bool = described("Whether answers come as server-sent events.", default=False)
    method: Literal["GET", "POST", "PUT"] = described("Of http.", default="POST")
    headers: dict[HeaderName, HeaderText] = described("Further headers; no secrets.", default={}, max_length=64)
    token: TokenSpec | None = described("The credential, by reference.", default=None, completed="none")
    tls: TlsSpec = described("How the server proves who it is.", default=TlsSpec())
    timeout: PositiveDuration | None = described(
        "A request that takes longer has failed.",
        default=None,
        unit="duration",
        completed="four times the longest latency target, 60s where there is none",
    )


class TemplateSpec(DocumentModel):
    """A text with places in braces, and a file of values for them."""

    text: str = described("The prompt, with {name} wherever a value stands.", min_length=1, max_length=65_536)
    values: str = described("JSON lines of values, with the expected answer, relative to here.", min_length=1)


class LengthsSpec(DocumentModel):
    """A trace's own token lengths: prompts of as many words, answers of at most as many tokens."""

    file: str = described("A request log with input_tokens and output_tokens, relative to here.", min_length=1)
    rows: int = described("Rows of it to use, from the first.", default=10_000, ge=1, le=1_000_000)


class RequestsSpec(DocumentModel):
    """What is sent: one of prompts, template and lengths."""

    prompts: str | None = described(
        "Recorded prompts as JSON lines, relative to here.", default=None, completed="none", min_length=1
    )
    template: TemplateSpec | None = described("Prompts from a template.", default=None, completed="none")
    lengths: LengthsSpec | None = described("Prompts of a trace's lengths.", default=None, completed="none")
    parameters: dict[str, Any] = described(
        "Further fields of every request, such as {temperature: 0}.", default={}, max_length=64
    )
    content_type: HeaderText = described("Of http's bodies.", default="application/json")


class ArrivalsSpec(DocumentModel):
    """When requests are sent: an open loop, never slowed by the answers."""

    law: Literal["poisson", "gamma", "replay"] = described("The law of the gaps.", default="poisson")
    scv: float | None = described(
        "Squared coefficient of variation of gamma's gaps.", default=None, completed="1", gt=0, le=1_000
    )
    file: str | None = described(
        "The request log whose gaps are replayed, relative to here.", default=None, completed="none", min_length=1
    )


class BoundSpec(DocumentModel):
    """A latency that so many of all intended requests must keep. One of the four."""

    latency: PositiveDuration | None = described(
        "From the intended send time to the end of the answer.", default=None, unit="duration", completed="none"
    )
    first_token: PositiveDuration | None = described(
        "From the intended send time to the first token.", default=None, unit="duration", completed="none"
    )
    between_tokens: PositiveDuration | None = described(
        "A request's mean time between tokens.", default=None, unit="duration", completed="none"
    )
    longest_gap: PositiveDuration | None = described(
        "A request's longest time between two events.", default=None, unit="duration", completed="none"
    )
    percentile: Percentile = described("The share of requests.", default=0.95)


class JsonSchemaSpec(DocumentModel):
    """The schema that answers must follow."""

    file: str = described("JSON Schema (draft 2020-12), relative to here.", min_length=1)


class ToleranceSpec(DocumentModel):
    """How near a number must be to the expected one: within either bound."""

    absolute: float = described("Largest difference.", default=0.0, ge=0)
    relative: float = described("Largest difference as a share of the expected.", default=0.0, ge=0)


class SimilaritySpec(DocumentModel):
    """How like the expected answer's embedding the answer's must be."""

    at_least: float = described("Least cosine.", default=0.9, ge=-1, le=1)
    url: str | None = described(
        "An embeddings endpoint for texts.", default=None, completed="none: the answers are embeddings", min_length=1
    )
    model: str | None = described("Its model.", default=None, completed="its only one", min_length=1)


class CheckerSpec(DocumentModel):
    """The user's own check. One of python and command; what it does wrong is no fault of the service's."""

    python: str | None = described(
        "An entry point, module:function(request, answer, expected) → bool.",
        default=None,
        completed="none",
        pattern=r"^[A-Za-z_][\w.]*:[A-Za-z_]\w*$",
    )
    command: list[str] | None = described(
        "A command that reads {request, answer, expected} as JSON and exits with 0 (right) or 1 (wrong).",
        default=None,
        completed="none",
        min_length=1,
        max_length=64,
    )
    timeout: PositiveDuration = described("It may take so long for an answer.", default=10.0, unit="duration")


class QualitySpec(DocumentModel):
    """How answers are checked, and how many must be right. One of the six checks."""

    exact: bool | None = described(
        "The answer is the expected one, spaces at its ends aside.", default=None, completed="none"
    )
    regex: str | None = described(
        "The answer holds this expression; {expected} in it stands for the expected answer.",
        default=None,
        completed="none",
        min_length=1,
    )
    json_schema: JsonSchemaSpec | None = described("The answer follows a JSON Schema.", default=None, completed="none")
    numeric: ToleranceSpec | None = described(
        "The answer's last number is near the expected one.", default=None, completed="none"
    )
    similarity: SimilaritySpec | None = described(
        "The answer's embedding is like the expected one's.", default=None, completed="none"
    )
    checker: CheckerSpec | None = described("The user's own.", default=None, completed="none")
    required: MeasuredShare = described("The share of checked answers that must be right.", default=0.99)
    pointer: str = described(
        "Where in http's JSON answers the text is, as a JSON pointer; empty: the whole body.",
        default="",
        pattern="^(/.*)?$",
    )
    sample: Annotated[float, Field(gt=0, le=1)] = described("The share of answers that is checked.", default=1.0)
    idle: int = described(
        "Prompts answered at idle before the search, one at a time, to compare with (§M.6).",
        default=200,
        unit="prompts",
        ge=0,
        le=100_000,
    )


class SearchSpec(DocumentModel):
    """What may be spent, and how exact the answer is to be."""

    start: float | None = described(
        "The first rate.", default=None, unit="requests/s", completed="found by a short ramp", gt=0, le=MAX_RATE
    )
    requests: int = described("Most requests.", default=100_000, ge=2_000, le=MAX_REQUESTS)
    time: PositiveDuration | None = described("Most time.", default=None, unit="duration", completed="no bound")
    tolerance: Annotated[float, Field(gt=0, le=0.5)] = described(
        "The interval's half-width as a share of the rate.", default=0.05
    )
    confidence: Annotated[float, Field(ge=0.5, le=0.999)] = described("Of the interval, two-sided.", default=0.95)
    shortest_step: PositiveDuration = described("No step is shorter.", default=20.0, unit="duration")
    seed: int = described("Of arrivals and of the order of requests.", default=1, ge=0, le=2**32 - 1)


class MeasuredHardware(DocumentModel):
    """What it runs on, where the endpoint does not say it."""

    gpu_model: str | None = described("The GPUs' model.", default=None, completed="nvidia-smi's, on loopback")
    gpus: int | None = described("How many.", default=None, completed="nvidia-smi's, on loopback", ge=0, le=1_000_000)
    driver: str | None = described("Their driver.", default=None, completed="nvidia-smi's, on loopback")


class MeasuredSettings(DocumentModel):
    """What it runs, where the endpoint does not say it."""

    image_digest: str | None = described("The container image's digest.", default=None, completed="unknown")
    model_revision: str | None = described("The model's revision.", default=None, completed="the endpoint's model")
    flags: str | None = described("The server's flags.", default=None, completed="the endpoint's version")


Promql = Annotated[str, Field(min_length=1, max_length=4_096)]


class LiveSpec(DocumentModel):
    """The service as Prometheus sees it, for `ebbtide claims check`: queries of one series each."""

    rate: Promql = described("Requests a second, of all replicas.", unit="requests/s")
    replicas: Promql = described("Replicas that serve.", default="vector(1)", unit="replicas")
    within: list[Promql] = described(
        "For each of targets, in their order, the share of requests that keeps it.", min_length=1, max_length=8
    )
    step: WholeSeconds = described(
        "How far apart the queries are evaluated: as long as what they average over.", default=600.0, unit="duration"
    )


class TargetSpecification(DocumentModel):
    """What is measured."""

    endpoint: EndpointSpec = described("Where requests go.")
    requests: RequestsSpec = described("What is sent.")
    arrivals: ArrivalsSpec = described("When.", default=ArrivalsSpec())
    targets: list[BoundSpec] = described("The latencies that must hold.", min_length=1, max_length=8)
    error_budget: MeasuredShare = described("The share of requests that may fail.", default=0.01)
    quality: QualitySpec | None = described("How answers are checked.", default=None, completed="they are not")
    search: SearchSpec = described("What may be spent.", default=SearchSpec())
    replicas: int = described("Replicas behind the endpoint.", default=1, ge=1, le=1_000_000)
    hardware: MeasuredHardware = described("What it runs on.", default=MeasuredHardware())
    settings: MeasuredSettings = described("What it runs.", default=MeasuredSettings())
    valid_for: PositiveDuration = described("The claim's life.", default=30 * 86_400.0, unit="duration")
    live: LiveSpec | None = described(
        "Queries that show the same service at work; the claim carries them on.", default=None, completed="none"
    )


class TargetForm(Document):
    """A Target: a service to be measured, what is sent to it, and what must hold. A file only."""

    kind: Literal["Target"] = described("The document's kind.")
    spec: TargetSpecification = described("The measurement.")
