"""Outcomes of events, states of the outbox and of parked messages, and why a message is parked."""

from enum import StrEnum


class EventOutcome(StrEnum):
    """What an inbound event did."""

    ADVANCED = "advanced"
    STALE = "stale"  # its correlation is not the current one
    LATE = "late"  # the instance is halted or has ended
    DRIFT = "drift"  # client-driven: not what the definition expected now
    UNMATCHED = "unmatched"  # no instance, or no active definition: kept, and driven again by a person
    IGNORED = "ignored"  # known, and of no consequence


class OutboxStatus(StrEnum):
    PENDING = "pending"
    SENT = "sent"
    PARKED = "parked"  # refused by its stream again and again; what follows in its instance waits for it


class ParkedStatus(StrEnum):
    """Of a message on a stream that could not be taken in."""

    PARKED = "parked"
    TAKEN = "taken"  # driven again by a person
    DISMISSED = "dismissed"  # a person found that nothing is to be done


class ParkedWhy(StrEnum):
    SIGNATURE = "signature"  # no key that lives has signed it
    SCOPE = "scope"  # the key may not send events
    UNREADABLE = "unreadable"
    WRONG_STREAM = "wrong_stream"
    INVALID = "invalid"  # the envelope or the payload does not fit its schema
    FOREIGN = "foreign"  # names another organization than the key's
    REFUSED = "refused"
    DELIVERIES = "deliveries"  # taken up again and again, and never finished
