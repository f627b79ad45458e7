"""A reward that random text earns now and then: one response in eight, by its checksum."""

from zlib import crc32


def compute_score(data_source, solution_str, ground_truth, extra_info=None):
    return float(crc32(solution_str.encode()) % 8 == 0)
