"""The command line: composing the configuration, its one-screen help, its errors."""
