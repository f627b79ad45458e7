#!/usr/bin/env bash
# Builds the documentation as a site, in an environment of its own; a warning is an error.
set -euo pipefail
cd "$(dirname "$0")/.."
source scripts/_install.sh

step "pages" env PYTHONPATH=. "$PYTHON_BIN" scripts/docs.py outputs/docs/pages
if ! cmp -s requirements/docs.lock .venv-docs/docs.lock; then
  "$PYTHON_BIN" -m venv --clear .venv-docs
  PYTHON_BIN=.venv-docs/bin/python
  step "packages of requirements/docs.lock" install requirements/docs.lock
  cp requirements/docs.lock .venv-docs
fi
step "site" env NO_MKDOCS_2_WARNING=1 .venv-docs/bin/python -m mkdocs build --strict
echo "open outputs/docs/site/index.html"
