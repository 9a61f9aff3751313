"""Keys and certificates of a lab, made with the openssl command."""

from __future__ import annotations

import subprocess
from pathlib import Path

DAYS = "30"
_EC = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")


def _openssl(*words: str | Path) -> None:
    done = subprocess.run(["openssl", *words], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"openssl {words[0]}: {done.stderr}")


def make_authority(folder: Path) -> None:
    """`ca.key` and `ca.crt`."""
    subject = ("-subj", "/CN=kubelab-ca", "-addext", "keyUsage=critical,keyCertSign,digitalSignature")
    out = ("-keyout", folder / "ca.key", "-out", folder / "ca.crt")
    _openssl("req", "-x509", *_EC, "-days", DAYS, *subject, *out)


def make_certificate(authority: Path, folder: Path, name: str, common_name: str, hosts: str) -> None:
    """`<name>.key` and `<name>.crt`, signed by the authority's folder, for ``hosts`` (a subjectAltName)."""
    folder.mkdir(parents=True, exist_ok=True)
    key, request, certificate, extensions = (folder / f"{name}.{end}" for end in ("key", "csr", "crt", "ext"))
    extensions.write_text(f"extendedKeyUsage=serverAuth,clientAuth\nsubjectAltName={hosts}\n")
    _openssl("req", *_EC, "-subj", f"/CN={common_name}", "-keyout", key, "-out", request)
    by = ("-CA", authority / "ca.crt", "-CAkey", authority / "ca.key", "-CAcreateserial")
    _openssl("x509", "-req", "-in", request, *by, "-days", DAYS, "-extfile", extensions, "-out", certificate)


def make_account_keys(folder: Path) -> None:
    """`sa.key` and `sa.pub`, with which service account tokens are signed."""
    _openssl("genrsa", "-out", folder / "sa.key", "2048")
    _openssl("rsa", "-in", folder / "sa.key", "-pubout", "-out", folder / "sa.pub")
