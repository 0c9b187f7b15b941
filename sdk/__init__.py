"""What third parties use without Holdpoint. `holdpoint_verify.py` stands alone: copy the one file."""
