"""Make tables, pages and figures from finished runs: ``main_report.py --help``."""

from recipe.study.report_command import main

if __name__ == "__main__":
    raise SystemExit(main())
