#!/usr/bin/env bash
# Checks this machine's GPU in at most 90 minutes, without network, after scripts/setup.sh --profile gpu.
# Usage: scripts/gpu_check.sh [-k "PART or PART"] [any option of pytest]; HINT_GPU_STAND_IN=cpu tries it without a GPU.
set -euo pipefail
cd "$(dirname "$0")/.."
source scripts/_lib.sh

[ -x "$PYTHON_BIN" ] || { echo "gpu_check.sh: no .venv; run scripts/setup.sh --profile gpu" >&2; exit 2; }
# Without tests/conftest.py, which needs the tools of --dev.
exec timeout 90m "$PYTHON_BIN" -m pytest --noconftest -v -s -m gpu tests/gpu "$@"
