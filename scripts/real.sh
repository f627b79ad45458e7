#!/usr/bin/env bash
# A real model on real problems, from nothing to a page: SmolLM2-135M-Instruct adds up animals' legs.
# Usage: scripts/real.sh [--profile cpu|gpu] [method] [key=value...]
# Model, problems and warm-up stay in outputs/real (or in REAL_FOLDER) and are used again.
set -euo pipefail
cd "$(dirname "$0")/.."
source scripts/_lib.sh
take_method "$@"; set -- "${rest[@]}"
bash scripts/setup.sh "${profile[@]}" --real
python=.venv/bin/python folder=${REAL_FOLDER:-outputs/real} hardware=laptop
case $(cat .venv/.hint-setup) in gpu-*) hardware=gpu1 ;; esac
mkdir -p "$folder"
phase() { echo "== $1 ($((SECONDS / 60)) min so far)"; }

phase "model"
[ -d "$folder/model" ] || "$python" recipe/hint/main_prepare.py model smollm2 "$folder/model"
phase "problems"
# NAME SPLIT SIZE SEED FEWEST MOST COUNT: so many animals, up to COUNT of each; splits share nothing.
problems() {
  [ -f "$folder/$1.parquet" ] || "$python" recipe/hint/main_prepare.py reasoning_gym:leg_counting \
    "$folder/$1.parquet" --kind maths --split "$2" --size "$3" --seed "$4" \
    --config "min_animals=$5" "max_animals=$6" min_instances=2 "max_instances=$7"
}
problems warmup train 400 1 3 5 15
problems train train 600 2 5 5 9
problems test test 300 3 5 5 9
phase "warm-up, kept in $folder/warmup"
"$python" recipe/hint/main_warmup.py experiment=real "hardware=$hardware" \
  data.train_files="$folder/warmup.parquet" actor_rollout_ref.model.path="$folder/model" \
  "warmup.output=$folder/warmup" warmup.optim.lr=3e-4 warmup.data.train_batch_size=8 \
  warmup.data.max_token_len_per_gpu=768 warmup.data.max_length=768 \
  warmup.shares.write=0.5 warmup.trainer.total_training_steps=44
phase "training with $method, and an evaluation before and after"
run=$folder/$method
"$python" recipe/hint/main_hint.py experiment=real "hardware=$hardware" "trainer.method=$method" \
  "actor_rollout_ref.model.path=$folder/warmup/model" "data.train_files=$folder/train.parquet" \
  "data.val_files=$folder/test.parquet" "hint.run_dir=$run" "$@"
phase "page"
"$python" recipe/hint/main_report.py html "$run" -o "$run/page.html"
phase "done: open $run/page.html"
