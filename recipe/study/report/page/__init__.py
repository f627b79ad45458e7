"""One HTML file that shows runs: settings, curves, every prompt's rounds, and samples."""
