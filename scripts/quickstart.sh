#!/usr/bin/env bash
# From a fresh checkout to a trained tiny model.
# Usage: scripts/quickstart.sh [--profile cpu|gpu] [method] [key=value...]
set -euo pipefail
cd "$(dirname "$0")/.."
source scripts/_lib.sh
take_method "$@"; set -- "${rest[@]}"
bash scripts/setup.sh "${profile[@]}"
hardware=laptop
case $(cat .venv/.hint-setup) in gpu-*) hardware=gpu1_tiny ;; esac
# 45 steps and 2 answers show the effect; docs/lab/log.md compares methods on the preset's 120 and 4.
exec .venv/bin/python recipe/hint/main_hint.py "hardware=$hardware" "trainer.method=$method" \
  trainer.total_training_steps=45 trainer.test_freq=45 trainer.save_freq=45 \
  actor_rollout_ref.rollout.val_kwargs.n=2 "$@"
