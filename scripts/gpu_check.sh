#!/usr/bin/env bash
# Checks this machine's GPU in at most 90 minutes, without network, after scripts/setup.sh --profile gpu.
# Usage: scripts/gpu_check.sh [--device cpu] [--only PART,...] [--minutes N]; --device cpu tries it without a GPU.
set -euo pipefail
cd "$(dirname "$0")/.."
source scripts/_lib.sh

[ -x "$PYTHON_BIN" ] || { echo "gpu_check.sh: no .venv; run scripts/setup.sh --profile gpu" >&2; exit 2; }
exec "$PYTHON_BIN" recipe/hint/main_gpu_check.py "$@"
