"""What an endpoint says of itself; what is given wins over it."""

from __future__ import annotations

from aiohttp import web

from ebbtide.adapters.documents.target_models import MeasuredHardware, MeasuredSettings
from ebbtide.adapters.load.endpoint import Endpoint, shown_url
from ebbtide.adapters.load.fingerprint import fingerprint, look
from loopback import running


def vllm() -> web.Application:
    """What vLLM answers beside its completions."""
    app = web.Application()

    async def models(request: web.Request) -> web.Response:
        return web.json_response({"data": [{"id": "llama-3"}]})

    async def version(request: web.Request) -> web.Response:
        return web.json_response({"version": "0.11.0"})

    async def metrics(request: web.Request) -> web.Response:
        return web.Response(
            text='vllm:cache_config_info{block_size="16",cache_dtype="auto",sliding_window="None"} 1.0\n'
        )

    app.add_routes([web.get("/v1/models", models), web.get("/version", version), web.get("/metrics", metrics)])
    return app


def test_it_is_read_from_the_endpoint() -> None:
    with running(vllm()) as address:
        seen = look(Endpoint(url=f"{address}/v1/chat/completions"))
    assert (seen.models, seen.version, seen.config) == (("llama-3",), "0.11.0", "block_size=16 cache_dtype=auto")
    found = fingerprint(
        seen, MeasuredHardware.model_validate({"gpuModel": "H100", "gpus": 8}), MeasuredSettings(), "llama-3"
    )
    assert (found.gpu_model, found.gpus, found.model_revision) == ("H100", 8, "llama-3")
    assert found.flags == "version=0.11.0 block_size=16 cache_dtype=auto"
    given = fingerprint(
        seen, MeasuredHardware(), MeasuredSettings.model_validate({"modelRevision": "r1", "flags": "--tp 8"}), "llama-3"
    )
    assert (given.model_revision, given.flags) == ("r1", "--tp 8")


def test_most_services_say_nothing(hostile: str) -> None:
    seen = look(Endpoint(url=f"{hostile}/whole"))
    assert (seen.models, seen.version, seen.config) == ((), None, None)


def test_an_address_is_shown_without_its_secrets() -> None:
    assert shown_url("https://a:b@host/v1?key=secret#x") == "https://host/v1"
