"""Attempts, reviews and quarantine cases move only together with what explains it, and cases and reviews stay."""

from django.db import migrations

from governance.sql.explained import door_only, entry_about, explained, fixed_columns, fixed_times, fresh, rows_stay

# Several transitions may be stored by one UPDATE: one of this transaction leaves the old state, one reaches the new.
TRANSITION = f"""
    EXISTS (SELECT FROM attempts_attempttransition t WHERE t.attempt_id = NEW.id AND t.from_state = OLD.state
        AND {fresh("t")})
    AND EXISTS (SELECT FROM attempts_attempttransition t WHERE t.attempt_id = NEW.id AND t.to_state = NEW.state
        AND t.reason_code = NEW.reason_code AND {fresh("t")})
    AND {entry_about("NEW.id")}
"""  # noqa: S608
# The fence is the newest intent's, and there is one intent for each try. Compared with the row at commit: a lease that
# is taken back in its own transaction leaves no intent. Without it a stale executor could be let in again.
INTENT = """
    EXISTS (SELECT FROM attempts_attempt a WHERE a.id = NEW.id
        AND a.lease_token = (SELECT coalesce(max(i.fence), 0) FROM attempts_dispatchintent i WHERE i.attempt_id = a.id)
        AND a.tries = (SELECT coalesce(max(i.number), 0) FROM attempts_dispatchintent i WHERE i.attempt_id = a.id))
"""
VOTED = f"""
    {entry_about("NEW.id")}
    AND (NEW.status = OLD.status OR NEW.status IN ('requested', 'expired', 'canceled')
        OR EXISTS (SELECT FROM attempts_reviewvote v WHERE v.review_id = NEW.id AND {fresh("v")}))
"""
# An erasure empties both references and is recorded about the attempt.
CASE = f"""
    {entry_about("NEW.id")}
    OR (NEW.evidence_ref = '' AND NEW.incident_ref = '' AND {entry_about("NEW.attempt_id")}
        AND (NEW.finding, NEW.found_by_ref, NEW.resolution, NEW.resolved_by_ref)
            = (OLD.finding, OLD.found_by_ref, OLD.resolution, OLD.resolved_by_ref)
        AND (NEW.escalated_at, NEW.resolved_at, NEW.follow_up_id)
            IS NOT DISTINCT FROM (OLD.escalated_at, OLD.resolved_at, OLD.follow_up_id))
"""


class Migration(migrations.Migration):
    dependencies = [("attempts", "0012_ended"), ("governance", "0028_explained")]
    operations = [
        explained("attempts_attempt", moved=["state", "reason_code", "ended_at"], by=TRANSITION),
        explained("attempts_attempt", moved=["lease_token", "tries"], by=INTENT, name="fenced"),
        fixed_columns("attempts_attempt", ["workflow_slug", "contract_version", "request_trace_id", "review_owner"]),
        explained(
            "attempts_review",
            moved=["status", "decided_at", "open_tiers", "excluded", "requeues", "claimed_by_id"],
            by=VOTED,
        ),
        fixed_columns(
            "attempts_review",
            [
                *("organization_id", "kind", "attempt_id", "origin_step", "tier", "approvals_required", "buckets"),
            ],
        ),
        fixed_times("attempts_review", ["requested_at", "expires_at", "remind_at"]),
        door_only("attempts_review", ["subject_ref", "label", "action_digest"]),
        rows_stay("attempts_review"),
        explained(
            "attempts_quarantinecase",
            moved=[
                *("escalated_at", "incident_ref", "finding", "evidence_ref", "found_by_ref"),
                *("resolution", "resolved_by_ref", "resolved_at", "follow_up_id"),
            ],
            by=CASE,
        ),
        fixed_columns(
            "attempts_quarantinecase",
            [
                *("organization_id", "attempt_id", "category", "reason_code", "escalation_owner"),
            ],
        ),
        fixed_times("attempts_quarantinecase", ["escalate_at", "opened_at"]),
        rows_stay("attempts_quarantinecase"),
    ]
