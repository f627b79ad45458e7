"""The command line: composing the configuration and its one-screen help."""
