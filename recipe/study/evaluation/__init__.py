"""Draw responses to benchmarks, grade them, estimate with intervals, compare, print."""
