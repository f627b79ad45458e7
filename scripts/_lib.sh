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

# take_method [--profile cpu|gpu] [method] [key=value...]: sets profile, method and rest.
take_method() {
  profile=() method=sage
  if [ "${1:-}" = --profile ]; then profile=(--profile "${2:-none}"); shift $(($# > 1 ? 2 : 1)); fi
  case ${1:-} in
    "" | *=*) ;;
    *) method=$1; shift ;;
  esac
  rest=("$@")
  [ -f "docs/methods/$method.md" ] || {
    echo "usage: $0 [--profile cpu|gpu] [method] [key=value...]; no method $method" >&2
    exit 2
  }
}
