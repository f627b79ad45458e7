"""Make the runs of a campaign: ``hint campaign --help``."""

from recipe.study.campaign import main

if __name__ == "__main__":
    main()
