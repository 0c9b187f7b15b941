"""Benchmarks: each with its reference in the same run, because times on a shared machine mean little alone."""
