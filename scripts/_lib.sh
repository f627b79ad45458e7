# Shared by the scripts beside it; sourced, not run. They all stand in the repository's root.
PYTHON_BIN=.venv/bin/python

# step NAME COMMAND...: one line per step; what the command said is shown only when it fails.
step() {
  local name=$1 start=$SECONDS log status=0
  shift
  log=$(mktemp)
  printf '%s ... ' "$name"
  "$@" >"$log" 2>&1 || status=$?
  if [ "$status" -eq 0 ]; then
    printf 'ok (%d s)\n' $((SECONDS - start))
  else
    printf 'FAILED (exit %d)\n' "$status"
    sed -e '/WARNING: Location .* is ignored/d' "$log" | tail -n 60 >&2
  fi
  rm -f "$log"
  return "$status"
}
