"""Make tables, pages and figures from finished runs: ``hint report --help``."""

from recipe.study.report_command import main

if __name__ == "__main__":
    raise SystemExit(main())
