# What installs packages; sourced, not run.
source scripts/_lib.sh

pip_install() { "$PYTHON_BIN" -m pip install -q --no-input --disable-pip-version-check --no-deps "$@"; }

uv_install() {
  pip_install "$(grep '^uv==' requirements/cpu.lock)" && "$PYTHON_BIN" -m uv pip install -q -p "$PYTHON_BIN" --no-deps "$@"
}

# install FILE: the requirements of FILE, by uv in a tenth of pip's time. uv does not read pip's settings,
# so pip does it where they name an index, and where uv reaches none.
bytecode=(--compile-bytecode) # else each process compiles what it imports, where it may not write here
install() {
  if ! "$PYTHON_BIN" -m pip config list | grep -E '\.(index-url|no-index)=' && uv_install "${bytecode[@]}" -r "$1"; then return; fi
  pip_install -r "$1"
}

can_use() { # can_use PYTHON: right version, and able to make an environment
  "$1" -c 'import ensurepip, sys, venv; sys.exit(sys.version_info[:2] not in ((3, 11), (3, 12)))' 2>/dev/null
}

install_cpu_torch() { # not the plain wheel: that one brings gigabytes of CUDA libraries
  local pin
  pin=$(grep '^torch==' requirements/cpu.lock)
  "$PYTHON_BIN" -m pip freeze 2>/dev/null | grep "^$pin" >/dev/null && return # not grep -q: it would break the pipe
  if "$PYTHON_BIN" -m pip index versions torch 2>/dev/null | grep -wF "${pin#torch==}+cpu" >/dev/null; then
    pip_install "$pin+cpu"
  elif ! uv_install --torch-backend=cpu "$pin"; then
    echo "No CPU build of $pin was found. Either let uv reach PyTorch's own index, or give pip a place"
    echo "that has $pin+cpu (an index in PIP_EXTRA_INDEX_URL, or a folder of wheels in PIP_FIND_LINKS)."
    return 1
  fi
}

install_flash_attn() { # for the generations of this machine's GPUs; its default are four, each as long to build
  local own
  own=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader | sed -n 's/^\([0-9]*\)\..*/\10/p' | sort -u | paste -sd ';') || own=
  [ -z "$own" ] || export FLASH_ATTN_CUDA_ARCHS=${FLASH_ATTN_CUDA_ARCHS:-$own}
  pip_install --no-cache-dir --no-build-isolation "$(grep '^flash-attn' requirements/gpu.lock)"
}
