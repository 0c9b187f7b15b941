"""The parts of a webhook delivery: what matches, when the next try is, how it is signed, how it is sent."""
