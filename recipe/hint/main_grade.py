"""Grade responses made elsewhere: ``hint grade --help``."""

from recipe.study.grade import main

if __name__ == "__main__":
    main()
