"""Make the runs of a campaign: ``main_campaign.py --help``."""

from recipe.study.campaign import main

if __name__ == "__main__":
    main()
