"""How operators answer a proposal."""

from enum import StrEnum


class ProposalVerdict(StrEnum):
    ENGAGED = "engaged"
    DISMISSED = "dismissed"
