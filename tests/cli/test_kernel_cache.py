"""A service user on a read-only install, without a home: kernels are compiled all the same."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

import pytest

from ebbtide.cli.kernel_cache import ensure_kernel_cache
from ebbtide.errors import PermanentError

NOWHERE = Path("/proc/nowhere")  # not even root makes a folder there


@pytest.fixture
def homeless(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(NOWHERE))
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(NOWHERE))


@pytest.mark.usefixtures("homeless")
def test_without_any_folder_a_private_one_is_made() -> None:
    ensure_kernel_cache(NOWHERE)
    own = Path(os.environ["NUMBA_CACHE_DIR"])
    try:
        assert own != NOWHERE
        assert own.stat().st_mode & 0o777 == 0o700
    finally:
        shutil.rmtree(own)


@pytest.mark.usefixtures("homeless")
def test_a_folder_that_can_be_written_is_left_to_numba(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ensure_kernel_cache(tmp_path)
    assert os.environ["NUMBA_CACHE_DIR"] == str(NOWHERE)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    ensure_kernel_cache(NOWHERE)
    assert os.environ["NUMBA_CACHE_DIR"] == str(NOWHERE)


@pytest.mark.usefixtures("homeless")
def test_without_even_a_temporary_folder_the_next_step_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(NOWHERE))
    with pytest.raises(PermanentError) as caught:
        ensure_kernel_cache(NOWHERE)
    assert caught.value.kind == "no_cache_folder"
    assert "NUMBA_CACHE_DIR" in str(caught.value)
