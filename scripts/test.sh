#!/usr/bin/env bash
# The checks that need no GPU. Usage: scripts/test.sh [--fast|--long]
# --fast leaves out the slow tests, --long adds those that CI has no time for
set -euo pipefail
cd "$(dirname "$0")/.."
source scripts/_lib.sh

parts=all
case ${1:-} in
  "") ;;
  --fast) parts=fast ;;
  --long) parts=long ;;
  *) echo "test.sh: got $1; expected [--fast|--long]" >&2; exit 2 ;;
esac
unset PYTHONDONTWRITEBYTECODE # hundreds of processes import the same modules
bash scripts/setup.sh --dev --real

bin=.venv/bin failed="" said=$(mktemp) types=
trap 'rm -f "$said"; kill $types 2>/dev/null || true' EXIT
"$bin/basedpyright" >"$said" 2>&1 & types=$! # on one core, beside the fast tests, which often wait
of_types() { wait "$types" || { cat "$said"; return 1; }; }
step "ruff check" "$bin/ruff" check . || failed+=" ruff-check"
step "ruff format" "$bin/ruff" format --check . || failed+=" ruff-format"
step "layers" "$bin/lint-imports" || failed+=" layers"
step "spelling" "$bin/codespell" || failed+=" spelling"
step "documentation" bash scripts/docs.sh || failed+=" documentation"
# A file's tests stay in one process: they share fixtures.
"$PYTHON_BIN" -m pytest -m "not gpu and not slow and not long" -n 3 --dist loadfile || failed+=" fast-tests"
step "types" of_types || failed+=" types"
# Two at a time: most of a short run is its start, which is single-threaded. As they are collected:
# by the number of a file's tests, the longest runs would come last, one after the other.
[ $parts = fast ] || "$PYTHON_BIN" -m pytest -m "slow and not long and not gpu" -n 2 --dist loadfile --no-loadscope-reorder --durations=30 || failed+=" slow-tests"
[ $parts != long ] || "$PYTHON_BIN" -m pytest -m "long and not gpu" || failed+=" long-tests"

if [ -n "$failed" ]; then echo "FAILED:$failed" >&2; exit 1; fi
