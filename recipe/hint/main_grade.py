"""Grade responses made elsewhere: ``main_grade.py --help``."""

from recipe.study.grade import main

if __name__ == "__main__":
    main()
