"""Plain verl on a CPU: loaded in every process, it puts the package's rollout server in place."""

from recipe.hint.runtime import rollout_server

rollout_server.register()
