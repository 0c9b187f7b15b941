"""Measurements, each beside a reference taken in the same run. Figures move with the machine; ratios hold."""
