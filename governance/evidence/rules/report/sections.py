"""The sections of the report, each made from the rows in the bundle. The words are part of the bundle's bytes."""

from typing import Any

from governance.enforcement.rules import results_from_document
from governance.evidence.rules.material import Row, canonical_plain
from governance.evidence.rules.report.markup import (
    Html,
    badge,
    code_markup,
    facts,
    moment_html,
    section,
    table_html,
    text_html,
)
from governance.evidence.rules.report.told import ReportFacts

VERDICTS = {"allow": ("allowed", "good"), "needs_approval": ("held for people", "warn"), "deny": ("denied", "bad")}
TONES = {
    "completed": "good",
    "approved": "good",
    "success": "good",
    "approve": "good",
    "confirm": "good",
    "halted": "bad",
    "failure": "bad",
    "reject": "bad",
    "rejected": "bad",
    "expired": "bad",
    "preflight-denied": "bad",
    "failed-quarantined": "bad",
    "review-required": "warn",
    "waiting_approval": "warn",
    "decline": "warn",
    "override": "warn",
}


def state(word: Any) -> Html:
    return badge(str(word).replace("_", " "), TONES.get(str(word), "plain"))


def summary_section(told: ReportFacts) -> Html:
    subject, rows = told.material.subject, told.material
    about: list[tuple[str, Any]] = [("Organization", f"{told.organization['name']} ({told.organization['slug']})")]
    about += [("Subject", f"{subject.kind} {subject.id}")]
    for row in canonical_plain(rows.instance):
        about += [("Run", state(row["status"])), ("Case", row["case_id"]), ("Definition", row["definition"])]
        about += [("Began", moment_html(row["created_at"])), ("Ended", moment_html(row["completed_at"]))]
        about += [("Halted because", code_markup(row["halt_reason"]))] if row["halt_reason"] else []
    return section("Summary", facts(about))


def attempts_section(told: ReportFacts) -> Html:
    parts = []
    for row in canonical_plain(told.material.attempts):
        parts.append(f"<h3>{text_html(row['workflow_slug'])} version {text_html(row['contract_version'])}</h3>")
        action = " ".join(part for part in (row["connector"], row["operation"], row["target_ref"]) if part)
        pairs: list[tuple[str, Any]] = [
            ("Attempt", code_markup(row["id"])),
            ("State", state(row["state"])),
            ("Reason", code_markup(row["reason_code"])),
            ("Asked by", told.who("service", row["caller_id"])),
            ("Asked at", moment_html(row["created_at"])),
            ("Action", action),
            ("Effect and risk", f"{row['effect']}, {row['risk_tier']}"),
            ("Context reference", row["patient_context_ref"]),
            ("Payload", f"{row['payload_ref']} (SHA-256 {row['payload_sha256']})" if row["payload_ref"] else ""),
            ("Fields written", ", ".join(row["fields"])),
            ("Digest of the action", code_markup(row["action_digest"])),
            ("Mode", row["runtime_mode"]),
            ("Ended", moment_html(row["ended_at"])),
        ]
        parts.append(facts(pairs))
    return section("What was asked for", *(parts or [text_html("No side effect was asked for.")]))


def timeline_section(told: ReportFacts) -> Html:
    rows = [
        (
            moment_html(entry["at"]),
            told.who(entry["actor_kind"], entry["actor_ref"]),
            words,
            code_markup(reason_code),
            code_markup(entry["sha256"][:12]),
        )
        for entry, moves in told.entries
        for words, reason_code in moves
    ]
    return section(
        "Timeline",
        table_html(["When (UTC)", "Who", "What", "Reason", "Ledger entry"], rows, empty="Nothing is on record."),
    )


def decisions_section(told: ReportFacts) -> Html:
    parts = []
    for row in canonical_plain(told.decisions):
        word, tone = VERDICTS.get(row["verdict"], (row["verdict"], "plain"))
        version = f"policy version {row['policy_version']}" if row["policy_version"] is not None else "no policy"
        rule = f"rule {row['rule_id']}" if row["rule_id"] else "no rule"
        head = f"<p>{badge(word, tone)} at {moment_html(row['at'])}, {text_html(version)}, {text_html(rule)}, "
        head += f"{code_markup(row['id'])}</p>"
        said = [
            (result.evaluator, VERDICTS.get(result.verdict.value, (result.verdict.value,))[0], result.explanation)
            for result in results_from_document(row["results"])
        ]
        parts += [head, table_html(["Check", "Result", "In words"], said, empty="No check ran.")]
    return section("What was decided, and why", *(parts or [text_html("Nothing was decided by rules.")]))


def reviews_section(told: ReportFacts) -> Html:
    rows = canonical_plain(told.material.reviews)
    held = [
        (
            moment_html(row["requested_at"]),
            row["tier"],
            row["approvals_required"],
            state(row["status"]),
            moment_html(row["decided_at"]),
        )
        for row in rows
    ]
    votes = [
        (
            moment_html(row["at"]),
            told.who("person", row["voter_ref"]),
            told.who("person", row["on_behalf_of_ref"]) if row["on_behalf_of_ref"] else "",
            state(row["verdict"]),
            code_markup(row["reason_code"]),
            _signed(row, told),
        )
        for row in canonical_plain(told.material.votes)
    ]
    return section(
        "Who was asked, and what they said",
        table_html(["Asked at", "Tier", "People needed", "Outcome", "Decided"], held, empty="No person was asked."),
        table_html(["When (UTC)", "Who", "In place of", "Said", "Reason", "Signature"], votes, empty="Nobody voted.")
        if held
        else "",
    )


def _signed(vote: Row, told: ReportFacts) -> Html | str:
    """Says what the bundle holds. Whether a signature is the person's own is for the verifier to say, not for us."""
    signature = vote.get("signature")
    if signature is None:
        return badge("unsigned", "plain")
    entry = next((entry for entry, _ in told.entries if entry["id"] == signature["registered_entry"]), None)
    since = moment_html(entry["at"]) if entry is not None else Html("at an unknown time")
    key = code_markup(entry["sha256"][:12]) if entry is not None else Html("")
    return Html(f"passkey registered {since} {key}")


def executions_section(told: ReportFacts) -> Html:
    intents = [
        (moment_html(row["at"]), row["number"], row["adapter"], row["executor_ref"], code_markup(row["effect_key"]))
        for row in canonical_plain(told.material.intents)
    ]
    receipts = [
        (
            moment_html(row["at"]),
            state(row["outcome"]),
            "late: its lease was lost" if row["late"] else "",
            code_markup(row["reason_code"]),
            _said(row["response_metadata"]),
            "reversible" if row["reversible"] else "",
        )
        for row in canonical_plain(told.material.receipts)
    ]
    return section(
        "What was done, and what came back",
        table_html(["Sent (UTC)", "Try", "By", "Executor", "Key"], intents, empty="Nothing was sent."),
        table_html(["Came back", "Outcome", "Note", "Reason", "Said", "Undo"], receipts, empty="Nothing came back."),
    )


def quarantine_section(told: ReportFacts) -> Html:
    rows = [
        (
            moment_html(row["opened_at"]),
            row["category"],
            code_markup(row["reason_code"]),
            row["finding"] or "nobody has said yet",
            row["resolution"] or "open",
            told.who("person", row["resolved_by_ref"]) if row["resolved_by_ref"] else "",
        )
        for row in canonical_plain(told.material.quarantine)
    ]
    if not rows:
        return Html("")
    return section(
        "Set apart", table_html(["Opened", "Category", "Reason", "What happened", "Resolution", "By"], rows, empty="")
    )


def picture_section(told: ReportFacts) -> Html:
    """The drawing of the run. The workflows app made it from escaped text."""
    if not told.material.picture:
        return Html("")
    return section("The way it took", Html(f'<div class="scroll picture">{told.material.picture}</div>'))


def steps_section(told: ReportFacts) -> Html:
    rows = [
        (
            row["number"],
            Html(f'<span id="step-{text_html(row["step_id"])}">{text_html(row["step_id"])}</span>'),
            row["step_kind"],
            row["attempt"],
            state(row["status"]),
            row["outcome"],
            moment_html(row["started_at"]),
            moment_html(row["completed_at"]),
        )
        for row in canonical_plain(told.material.steps)
    ]
    if not told.material.instance:
        return Html("")
    headings = ["", "Step", "Kind", "Try", "State", "Outcome", "Began", "Ended"]
    return section("Steps", table_html(headings, rows, empty="No step was entered."))


def interventions_section(told: ReportFacts) -> Html:
    rows = [
        (
            moment_html(row["at"]),
            told.who(row["actor_kind"], row["actor_ref"]),
            str(row["action"]).replace("_", " "),
            code_markup(row["reason_code"]),
            f"{row['before_state'].get('status')} → {row['after_state'].get('status')}",
        )
        for row in canonical_plain(told.material.interventions)
    ]
    if not told.material.instance:
        return Html("")
    return section(
        "Interventions", table_html(["When (UTC)", "Who", "What", "Reason", "Run"], rows, empty="Nobody intervened.")
    )


def events_section(told: ReportFacts) -> Html:
    rows = [
        (moment_html(row["received_at"]), row["number"], row["event_type"], row["source"], row["outcome"], row["drift"])
        for row in canonical_plain(told.material.events)
    ]
    if not told.material.instance:
        return Html("")
    headings = ["Received (UTC)", "", "Event", "From", "Consequence", "Drift"]
    return section("Events", table_html(headings, rows, empty="No event came in."))


def people_section(told: ReportFacts) -> Html:
    rows = [
        (person.name or "erased", person.kind, code_markup(person.reference))
        for person in sorted(told.people, key=lambda person: (person.kind, person.name, person.reference))
    ]
    told_of = "A person stands in the ledger as a commitment. An erased one can no longer be named, by anybody."
    return section(
        "People and services",
        table_html(["Name", "Kind", "Reference in the ledger"], rows, empty="Nobody."),
        f'<p class="soft">{text_html(told_of)}</p>',
    )


def ties_section(told: ReportFacts) -> Html:
    """Which of the facts on this page a sealed ledger entry ties, and which stand only on the anchor."""
    rows = [
        (name, tie["rows"], tie["bound"], ", ".join(sorted(tie["not_tied"])) or "nothing")
        for name, tie in sorted(told.ties.items())
    ]
    told_of = (
        "Before this page was made, every row was compared with the ledger, field by field. A field that is not tied "
        "is shown as the database had it at that time; since then it is covered by the seal."
    )
    return section(
        "What the ledger ties",
        table_html(["Rows of", "How many", "Bound as a whole", "Fields not tied"], rows, empty="There are no rows."),
        f'<p class="soft">{text_html(told_of)}</p>',
    )


def costs_section(told: ReportFacts) -> Html:
    rows = [
        (row["provider"], row["model"], row["calls"], row["units"], f"{row['amount']} {row['currency']}".strip())
        for row in told.costs
    ]
    return section(
        "Costs", table_html(["Provider", "Model", "Calls", "Units", "Amount"], rows, empty="No cost was reported.")
    )


def _said(metadata: Row) -> str:
    return ", ".join(f"{name}: {value}" for name, value in sorted(metadata.items()))
