"""Benchmarks. Each measures a reference in the same run: times on a shared machine mean little by themselves."""
