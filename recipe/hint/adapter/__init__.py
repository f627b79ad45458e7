"""The only folder that imports verl, Ray, vLLM and torch; it decides nothing."""
