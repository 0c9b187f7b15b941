"""Adapters, one file each: they call the outside for an attempt and report success, failure or unknown."""
