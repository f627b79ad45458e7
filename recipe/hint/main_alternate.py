"""Train two policies in turns; see :mod:`recipe.study.alternate`."""

from recipe.study.alternate import main

if __name__ == "__main__":
    main()
