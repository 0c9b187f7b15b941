"""The record: one append function, one registry of actions. Sealing comes on top, after commit."""
