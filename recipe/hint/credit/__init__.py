"""Compute advantages for methods that do not use verl's estimator: numpy in, numpy out."""
