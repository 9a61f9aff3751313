# `make test` sets up everything that the tests need and runs them: the fences first, then the tests.
.PHONY: test control-plane setup fences fast bench docs

test: control-plane setup fences
	uv run --no-sync pytest -n 2 --dist worksteal -q -rR

# Kubernetes for the tests, built from Go modules outside the checkout: begins here, and the tests that need it wait.
control-plane:
	tests/kubelab/build.sh --background

setup:
	uv sync --quiet
	scripts/chromium

fences:
	uv run --no-sync ruff format --check --quiet .
	uv run --no-sync ruff check --quiet .
	uv run --no-sync mypy
	uv run --no-sync lint-imports --no-logo 2>/dev/null || uv run --no-sync lint-imports
	uv run --no-sync python scripts/room_sizes.py

# While working: no setup, stop at the first failure.
fast:
	uv run --no-sync pytest -x -q

# Speed, against benchmarks/limits.toml; needs a quiet machine, so not part of the tests.
bench:
	uv sync --quiet --group bench
	uv run --no-sync python -m benchmarks
