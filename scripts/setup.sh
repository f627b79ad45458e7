#!/usr/bin/env bash
# Makes .venv from the lock files. Usage: scripts/setup.sh [--profile cpu|gpu] [--dev] [--real]
set -euo pipefail
cd "$(dirname "$0")/.."
source scripts/_install.sh

stop() { echo "setup.sh: $1" >&2; exit 2; }
profile=cpu tools=run more=run
if nvidia-smi -L 2>/dev/null | grep '^GPU' >/dev/null; then profile=gpu; fi
while [ $# -gt 0 ]; do
  case $1 in
    --profile) profile=${2:-none}; shift $(($# > 1)) ;;
    --dev) tools=dev; [ -n "${PYTHONDONTWRITEBYTECODE:-}" ] || bytecode=() ;;
    --real) more=real ;;
    *) stop "got $1; expected [--profile cpu|gpu] [--dev] [--real]" ;;
  esac; shift
done
case $profile in cpu | gpu) ;; *) stop "--profile is $profile; choose cpu or gpu" ;; esac
stamp=.venv/.hint-setup kind=$profile-$(pwd | cksum | cut -d ' ' -f 1) # an environment cannot be moved
digest=$(cat requirements/{cpu,gpu,dev,real}.lock pyproject.toml | sha256sum | cut -d ' ' -f 1)
if grep -qsxE "$kind ($tools|dev) ($more|real) $digest" "$stamp"; then exit 0; fi # more serves less
echo "Setting up .venv ($profile profile)"
if ! can_use "$PYTHON_BIN" || { [ -f "$stamp" ] && ! grep -q "^$kind " "$stamp"; }; then
  [ ! -L .venv ] || [ ! -f "$stamp" ] || stop ".venv leads to another environment, which this would replace; remove the link"
  for python in ${PYTHON:-python3.11 python3 python3.12} none; do can_use "$python" && break; done
  [ "$python" != none ] || stop "needs Python 3.11 or 3.12 with its venv module; PYTHON=/path names one"
  step "new environment" "$python" -m venv --clear .venv
fi
echo "$kind unfinished" >"$stamp"
[ "$profile" = gpu ] || step "torch, CPU build" install_cpu_torch
grep -vE '^(flash-attn|uv)=' "requirements/$profile.lock" >.venv/requirements.txt
step "packages of requirements/$profile.lock (takes minutes)" install .venv/requirements.txt
if [ "$profile" = gpu ]; then # after torch, which its build imports; a run can do without it
  step "flash-attn (needs nvcc; MAX_JOBS limits its memory)" install_flash_attn ||
    echo "Without it: see docs/models.md#flash-attn" >&2
fi
for lock in $tools $more; do [ "$lock" = run ] || step "packages of requirements/$lock.lock" install "requirements/$lock.lock"; done
step "this package, editable" pip_install --no-build-isolation -e .
"$PYTHON_BIN" -P -c 'import recipe.hint' # -P: from the environment, not from this folder
echo "$kind $tools $more $digest" >"$stamp"
