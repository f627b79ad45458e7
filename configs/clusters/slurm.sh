#!/bin/bash
# Untried. sbatch configs/clusters/slurm.sh trainer.method=sage hint.run_dir=/shared/runs/first ...
# One task per node starts Ray, then the first node starts the run. See docs/clusters.md.
#SBATCH --nodes=2 --ntasks-per-node=1 --gpus-per-node=8 --cpus-per-task=64 --exclusive
set -euo pipefail
source .venv/bin/activate
head=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n1)
export RAY_AUTH_MODE=token RAY_AUTH_TOKEN=$(python -c 'import secrets; print(secrets.token_hex(32))')
export SRUN_CPUS_PER_TASK=$SLURM_CPUS_PER_TASK  # srun does not take sbatch's since Slurm 22.05
srun --nodes=1 --ntasks=1 -w "$head" ray start --head --port=6379 --block &
sleep 20
srun --nodes=$((SLURM_NNODES - 1)) --ntasks=$((SLURM_NNODES - 1)) -x "$head" \
  ray start --address="$head:6379" --block &
until [ "$(ray status --address="$head:6379" 2>/dev/null | grep -c '^ 1 node_')" = "$SLURM_NNODES" ]; do
  sleep 5
done
srun --overlap --nodes=1 --ntasks=1 -w "$head" env RAY_ADDRESS="$head:6379" \
  hint train hardware=multinode trainer.nnodes="$SLURM_NNODES" "$@"
