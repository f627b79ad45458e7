"""Programs: run against their tests in a process that cannot reach what decides."""
