"""Which tables are governed: each of their rows is bound to the ledger (docs/ledger.md). One entry per table of the
database; a table that stands in neither list fails `make check`."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final


@dataclass(frozen=True, slots=True)
class BoundTable:
    """`number` names the table inside bound rows: it never changes and is never given to another table."""

    number: int
    erasable: bool = False
    """Rows can be erased by order. Their digests are salted, so that nobody can guess from a digest what was erased."""
    erased: str = ""
    """How the erased form of NEW is known, if its door does not say that it erases."""
    loose: Mapping[str, str] = field(default_factory=dict)
    """Columns that no digest covers, each with the reason. They say nothing that a decision depends on."""


_USED = "when it was used last: written with ordinary use, and nothing depends on it"

BOUND: Final[Mapping[str, BoundTable]] = {
    # Who: people, services, keys, roles.
    "governance_user": BoundTable(
        1, erasable=True, erased="NEW.username = 'erased-' || NEW.id::text", loose={"last_login": _USED}
    ),
    "governance_user_groups": BoundTable(2),
    "governance_user_user_permissions": BoundTable(3),
    "governance_personreference": BoundTable(4, erasable=True),
    "governance_serviceaccount": BoundTable(5),
    "governance_apikey": BoundTable(6, loose={"last_used_at": _USED}),
    "governance_passkey": BoundTable(7, erasable=True),
    "governance_foundingend": BoundTable(8),
    "governance_signinrules": BoundTable(9),
    "governance_signinlink": BoundTable(10, erasable=True),
    "governance_rolegroup": BoundTable(11),
    "auth_group": BoundTable(12),
    "auth_group_permissions": BoundTable(13),
    "auth_permission": BoundTable(14),
    "django_content_type": BoundTable(15),
    "governance_organizationgroupobjectpermission": BoundTable(16),
    "governance_organizationuserobjectpermission": BoundTable(17),
    "governance_contractgroupobjectpermission": BoundTable(18),
    "governance_contractuserobjectpermission": BoundTable(19),
    "guardian_groupobjectpermission": BoundTable(20),
    "guardian_userobjectpermission": BoundTable(21),
    "mfa_authenticator": BoundTable(22, erasable=True, loose={"last_used_at": _USED}),
    "account_emailaddress": BoundTable(23, erasable=True),
    "socialaccount_socialaccount": BoundTable(24, erasable=True, loose={"last_login": _USED}),
    "socialaccount_socialapp": BoundTable(25),
    "governance_identityprovider": BoundTable(26),
    "governance_providerperson": BoundTable(27, erasable=True),
    "governance_providergroup": BoundTable(28),
    "governance_providergroup_members": BoundTable(29),
    "governance_authoritychange": BoundTable(30, erasable=True),
    "governance_authorship": BoundTable(31),
    # Which rules: organizations, contracts, policies, regions, the schedule.
    "governance_organization": BoundTable(40),
    "governance_product": BoundTable(41),
    "governance_reviewertier": BoundTable(52),
    "governance_contract": BoundTable(42),
    "governance_contractdocument": BoundTable(43),
    "governance_readinessdecision": BoundTable(44),
    "governance_policy": BoundTable(45),
    "governance_snapshot": BoundTable(46),
    "governance_regionprofile": BoundTable(47),
    "governance_schedulechange": BoundTable(48),
    "governance_shutdown": BoundTable(49),
    "governance_breakglass": BoundTable(50),
    "reasoncodes_reasoncode": BoundTable(51),
    # What happened: decisions, reads, violations, retention, evidence, keys of the ledger.
    "governance_enforcementdecision": BoundTable(60, erasable=True),
    "governance_governanceviolation": BoundTable(61),
    "governance_readaccess": BoundTable(62),
    "governance_note": BoundTable(63, erasable=True),
    "governance_legalhold": BoundTable(64),
    "governance_erasureorder": BoundTable(65),
    "governance_erasureitem": BoundTable(66),
    "governance_erasedpayload": BoundTable(67),
    "governance_exportrequest": BoundTable(68),
    "governance_deletionrequest": BoundTable(69),
    "governance_contextreference": BoundTable(70, erasable=True),
    "governance_evidencebundle": BoundTable(71),
    "governance_ledgerkey": BoundTable(72),
    "governance_ledgerkeyhandover": BoundTable(73),
    "governance_guardmanifest": BoundTable(77),
    "governance_ledgerepoch": BoundTable(74),
    "governance_recordfault": BoundTable(75),
    "governance_recordacceptance": BoundTable(76),
    "governance_outageinterval": BoundTable(78),
    # Attempts.
    "attempts_attempt": BoundTable(100, erasable=True),
    "attempts_attempttransition": BoundTable(101),
    "attempts_idempotencyrecord": BoundTable(102, erasable=True),
    "attempts_dispatchintent": BoundTable(103, erasable=True),
    "attempts_receipt": BoundTable(104, erasable=True),
    "attempts_review": BoundTable(105, erasable=True),
    "attempts_reviewvote": BoundTable(106, erasable=True),
    "attempts_votesignature": BoundTable(107, erasable=True),
    "attempts_delegation": BoundTable(108),
    "attempts_quarantinecase": BoundTable(109, erasable=True),
    "attempts_shutdownproposal": BoundTable(118),
    "attempts_proposalanswer": BoundTable(119),
    "attempts_notificationroute": BoundTable(110),
    "attempts_chatworkspace": BoundTable(111),
    "attempts_chatidentity": BoundTable(112, erasable=True),
    "attempts_effectask": BoundTable(113, erasable=True),
    # Workflows.
    "workflows_workflowdefinition": BoundTable(130),
    "workflows_workflowdefinitionrevision": BoundTable(131),
    "workflows_workflowinstance": BoundTable(132, erasable=True),
    "workflows_workflowstep": BoundTable(133, erasable=True),
    "workflows_workflowevent": BoundTable(134, erasable=True),
    "workflows_workflowintervention": BoundTable(135, erasable=True),
    "workflows_bulkintervention": BoundTable(136),
    "workflows_webhookendpoint": BoundTable(137),
    "workflows_webhooksecret": BoundTable(138),
    "workflows_module": BoundTable(145),
    "workflows_moduleversion": BoundTable(146),
    "workflows_modulesecret": BoundTable(147),
}

_TREE = "the ledger itself: entries, tree and heads prove each other, and witnesses keep the heads"
_TRANSPORT = "what is on its way and how often it was tried; what it says is in bound rows"
_ONCE = "a one-time secret that ends within minutes or hours"
_SIGN_IN = "sessions and failed sign-ins"
_CLOCK = "beat's own bookkeeping; readiness compares the schedule with the program's table"
_VIEW = "counts and choices for pages"

UNBOUND: Final[Mapping[str, str]] = {
    "governance_ledgerentry": _TREE,
    "governance_ledgerleaf": _TREE,
    "governance_ledgernode": _TREE,
    "governance_ledgercheckpoint": _TREE,
    "governance_witnessreceipt": _TREE,
    "governance_boundrows": _TREE,
    "governance_rowshape": "how rows are written as text: a wrong one makes every digest of its table wrong",
    "governance_clockbeat": "when the last heartbeat came; an outage that it shows is a bound row",
    "governance_ledgerverification": "progress of a check",
    "governance_recordprogress": "progress of a check",
    "attempts_slot": "derived: which running attempt counts for which cap",
    "attempts_notification": _TRANSPORT,
    "attempts_receivercircuit": _TRANSPORT,
    "attempts_keyendnotice": _TRANSPORT,
    "attempts_holdsnotice": _TRANSPORT,
    "attempts_casenotice": _TRANSPORT,
    "attempts_proposalnotice": _TRANSPORT,
    "attempts_chatcallback": _ONCE,
    "attempts_chatlinkcode": _ONCE,
    "attempts_votechallenge": _ONCE,
    "attempts_mailchoice": _VIEW,
    "attempts_repeatedrefusal": "how often a refusal that is on the ledger was repeated",
    "governance_passwordresetrequest": _ONCE,
    "governance_intakeminute": _VIEW,
    "governance_savedfilter": _VIEW,
    "account_emailconfirmation": _ONCE,
    "socialaccount_socialtoken": _ONCE,
    "usersessions_usersession": _SIGN_IN,
    "django_session": _SIGN_IN,
    "axes_accessattempt": _SIGN_IN,
    "axes_accessattemptexpiration": _SIGN_IN,
    "axes_accessfailurelog": _SIGN_IN,
    "axes_accesslog": _SIGN_IN,
    "django_admin_log": "the console's own history; acts are on the ledger",
    "django_migrations": "which migrations ran; the manifest of the guards covers what they made",
    "django_celery_beat_clockedschedule": _CLOCK,
    "django_celery_beat_crontabschedule": _CLOCK,
    "django_celery_beat_intervalschedule": _CLOCK,
    "django_celery_beat_periodictask": _CLOCK,
    "django_celery_beat_periodictasks": _CLOCK,
    "django_celery_beat_solarschedule": _CLOCK,
    "workflows_outboxevent": _TRANSPORT,
    "workflows_parkedmessage": _TRANSPORT,
    "workflows_modulecall": _TRANSPORT,
    "workflows_nudge": _TRANSPORT,
    "workflows_bulkitem": "progress of a bulk intervention; each intervention is a bound row",
    "workflows_webhookcursor": _TRANSPORT,
    "workflows_webhookdelivery": _TRANSPORT,
    "workflows_webhookattempt": _TRANSPORT,
}
