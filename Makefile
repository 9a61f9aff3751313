# `make test` sets up everything that the tests need and runs them: the fences first, then the tests.
.PHONY: test setup fences fast bench docs

test: setup fences
	uv run --no-sync pytest -n 2 --dist worksteal -q

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
