"""What is checked before Ray starts."""
