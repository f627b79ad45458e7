"""What makes a CPU a device for verl: platform, rollout, transport, process start."""
