"""What an endpoint does wrong is said before anything is measured, and no credential with it."""

from __future__ import annotations

import socket
import ssl
import subprocess
from pathlib import Path

import pytest
from aiohttp import web

from ebbtide.adapters.load.endpoint import Credential, Endpoint, Tls
from ebbtide.adapters.load.items import Item
from ebbtide.adapters.load.preflight import first_answers
from ebbtide.errors import InputError, PermanentError, TemporaryError, WorldError
from loopback import running

ITEMS = (Item(body=b'{"messages": [{"role": "user", "content": "hello"}]}'),)


def refused(address: str, **given: object) -> WorldError:
    with pytest.raises(WorldError) as caught:
        first_answers(Endpoint(url=address, **{"timeout_s": 20.0, **given}), ITEMS)
    return caught.value


def test_an_endpoint_that_answers(hostile: str) -> None:
    idle = first_answers(Endpoint(url=f"{hostile}/whole"), ITEMS)
    assert 0.0 < idle.latency_s < 60.0
    assert [one.text for one in idle.calls] == ["yes"] * 3


@pytest.mark.parametrize(
    ("path", "kind", "temporary"),
    [
        ("unauthorized", "unauthorized", False),
        ("cut", "bad_answer", False),
        ("page", "bad_answer", False),
        ("moved", "redirected", False),
        ("garbage", "bad_answer", False),
        ("busy", "endpoint_busy", True),
        ("broken", "refused_request", False),
        ("error", "refused_request", False),
        ("nowhere", "refused_request", False),
    ],
)
def test_what_is_no_answer(hostile: str, path: str, kind: str, temporary: bool) -> None:
    error = refused(f"{hostile}/{path}")
    assert error.kind == kind
    assert isinstance(error, TemporaryError if temporary else PermanentError)
    assert "secret" not in str(error)


def test_answers_that_never_end(hostile: str) -> None:
    assert refused(f"{hostile}/silent", timeout_s=0.3).kind == "no_answer_in_time"
    assert refused(f"{hostile}/endless", timeout_s=0.5, stream=True).kind == "no_answer_in_time"
    flooded = refused(f"{hostile}/flood", most_bytes=1_000_000)
    assert (flooded.kind, "more than 1,000,000 bytes" in flooded.message) == ("bad_answer", True)


def test_a_stream_that_ends_too_soon(hostile: str) -> None:
    error = refused(f"{hostile}/unfinished", stream=True)
    assert "cut short: the stream ended after 1 tokens, unfinished" in error.message


def test_nobody_there() -> None:
    with socket.socket() as taken:  # bound, not listening: nobody else takes the port meanwhile
        taken.bind(("127.0.0.1", 0))
        error = refused(f"http://127.0.0.1:{taken.getsockname()[1]}/v1/chat/completions")
    assert error.kind == "endpoint_down"
    assert error.hint == "start it, or correct endpoint.url"


def test_a_certificate_of_nobody_s(tmp_path: Path) -> None:
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    subject = ["-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"]
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", *subject]
    subprocess.run([*command, "-keyout", key, "-out", certificate, "-days", "2"], check=True, capture_output=True)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(certificate, key)
    app = web.Application()

    async def whole(request: web.Request) -> web.StreamResponse:
        return web.json_response({"choices": [{"message": {"content": "yes"}}]})

    app.add_routes([web.post("/whole", whole)])
    with running(app, tls=tls) as address:
        error = refused(f"{address}/whole")
        assert error.kind == "tls"
        assert "caFile" in (error.hint or "")
        for given in (Tls(ca_file=str(certificate)), Tls(verify=False)):
            assert first_answers(Endpoint(url=f"{address}/whole", tls=given), ITEMS).latency_s < 60.0


def test_no_credential_is_ever_said(hostile: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("THE_TOKEN", "very-secret-token")
    credential = Credential(env="THE_TOKEN")
    error = refused(f"{hostile}/unauthorized", credential=credential)
    assert "very-secret" not in f"{error} {error!r} {credential!r} {error.__cause__!r} {error.__context__!r}"
    assert error.hint == "it refuses the credential in $THE_TOKEN"


def test_a_credential_that_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_TOKEN", raising=False)
    with pytest.raises(InputError, match="NO_TOKEN is not set"):
        Credential(env="NO_TOKEN").header_value()
    with pytest.raises(InputError, match="no such file"):
        Credential(file=str(tmp_path / "none")).header_value()
    (tmp_path / "token").write_text("two\nlines")
    with pytest.raises(InputError, match="no header may hold") as caught:
        Credential(file=str(tmp_path / "token")).header_value()
    assert "two" not in str(caught.value)
