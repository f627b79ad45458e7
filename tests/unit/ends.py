"""How a program that a test calls ends."""


def code_of(main, arguments):
    """Return its exit code, whether it returns one or exits."""
    try:
        return main(arguments)
    except SystemExit as end:
        return end.code
