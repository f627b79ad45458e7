"""The command line: composing the configuration, its one-screen help, its errors.

Whatever imports it is a program, whose streams are made safe first.
"""

from recipe.hint.command.streams import guard_streams

guard_streams()
