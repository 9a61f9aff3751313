"""What an endpoint says of itself, and what this machine says of its GPUs: the claim's fingerprint (§M.8)."""

from __future__ import annotations

import json
import re
import subprocess
import urllib.request
from dataclasses import dataclass
from urllib.parse import urlsplit

from ebbtide.adapters.documents.target_models import MeasuredHardware, MeasuredSettings
from ebbtide.adapters.load.client import tls_of
from ebbtide.adapters.load.endpoint import Endpoint
from ebbtide.fleet.fingerprint import Fingerprint

LOOK_S = 5.0
MOST_BYTES = 2**22
_CONFIG = re.compile(r"^vllm:cache_config_info\{([^}]*)\}", re.MULTILINE)
_LABEL = re.compile(r'(\w+)="([^"]*)"')
_TELLING = ("block_size", "cache_dtype", "gpu_memory_utilization", "enable_prefix_caching", "num_gpu_blocks")


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What was found; None where nothing was said."""

    models: tuple[str, ...] = ()
    version: str | None = None
    config: str | None = None
    gpu_model: str | None = None
    gpus: int | None = None
    driver: str | None = None


def look(endpoint: Endpoint) -> Seen:
    """Asks /v1/models, /version and /metrics beside the endpoint, and nvidia-smi where it is this machine."""
    root = _root(endpoint.url)
    models = _json(endpoint, f"{root}/v1/models")
    version = _json(endpoint, f"{root}/version")
    metrics = _text(endpoint, f"{root}/metrics") or ""
    local = urlsplit(endpoint.url).hostname in ("127.0.0.1", "localhost", "::1")
    gpu_model, gpus, driver = _gpus() if local else (None, None, None)
    listed = models.get("data") if isinstance(models, dict) else None
    return Seen(
        models=tuple(str(one["id"]) for one in listed if isinstance(one, dict) and "id" in one)
        if isinstance(listed, list)
        else (),
        version=str(version["version"])[:128] if isinstance(version, dict) and "version" in version else None,
        config=config_of(metrics),
        gpu_model=gpu_model,
        gpus=gpus,
        driver=driver,
    )


def fingerprint(seen: Seen, hardware: MeasuredHardware, settings: MeasuredSettings, model: str | None) -> Fingerprint:
    """What was given, and what was seen where nothing was."""
    flags = " ".join(part for part in (f"version={seen.version}" if seen.version else "", seen.config or "") if part)
    return Fingerprint(
        gpu_model=hardware.gpu_model or seen.gpu_model,
        gpus=hardware.gpus if hardware.gpus is not None else seen.gpus,
        driver=hardware.driver or seen.driver,
        image_digest=settings.image_digest,
        model_revision=settings.model_revision or model,
        flags=settings.flags or flags or None,
    )


def config_of(metrics: str) -> str | None:
    """vLLM's cache settings out of its metrics, in a fixed order.

    >>> config_of('vllm:cache_config_info{block_size="16",cache_dtype="auto"} 1.0')
    'block_size=16 cache_dtype=auto'
    """
    found = _CONFIG.search(metrics)
    if found is None:
        return None
    labels = dict(_LABEL.findall(found[1]))
    return " ".join(f"{name}={labels[name]}" for name in _TELLING if name in labels) or None


def _root(url: str) -> str:
    parts = urlsplit(url)
    path = parts.path.split("/v1/", 1)[0] if "/v1/" in parts.path else ""
    return f"{parts.scheme}://{parts.netloc}{path}"


def _json(endpoint: Endpoint, url: str) -> object:
    text = _text(endpoint, url)
    try:
        found: object = json.loads(text) if text else None
    except ValueError:
        return None
    return found


def _text(endpoint: Endpoint, url: str) -> str | None:
    """A page beside the endpoint; None for whatever goes wrong: most services have none of them."""
    request = urllib.request.Request(url, headers=dict(endpoint.headers))
    if endpoint.credential is not None:
        request.add_unredirected_header(endpoint.credential.header, endpoint.credential.header_value())
    try:
        tls = tls_of(endpoint)
        handler = urllib.request.HTTPSHandler(context=tls if not isinstance(tls, bool) else None)
        opener = urllib.request.build_opener(handler, urllib.request.ProxyHandler({}))
        with opener.open(request, timeout=LOOK_S) as response:
            content: bytes = response.read(MOST_BYTES)
            return content.decode(errors="replace")
    except (OSError, ValueError):
        return None
    except Exception:  # http.client raises what it likes at what is no HTTP
        return None


def _gpus() -> tuple[str | None, int | None, str | None]:
    try:
        said = subprocess.run(
            ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"],
            capture_output=True,
            timeout=LOOK_S,
            check=True,
        ).stdout.decode(errors="replace")
    except (OSError, subprocess.SubprocessError):
        return None, None, None
    rows = [line.split(",") for line in said.splitlines() if "," in line]
    if not rows:
        return None, None, None
    return rows[0][0].strip(), len(rows), rows[0][1].strip()
