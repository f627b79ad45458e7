"""The command line: composing the configuration, its one-screen help, its errors.

Whatever imports it is a program, whose streams are made safe first; Ctrl-C while it imports the
rest shows no traceback.
"""

from recipe.hint.command.ending import tell_interrupt_of_imports
from recipe.hint.command.streams import guard_streams

guard_streams()
tell_interrupt_of_imports()
