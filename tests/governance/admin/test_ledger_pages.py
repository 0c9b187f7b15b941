"""The proof of the record in the console: verification on demand, witnesses, and who may see them."""

from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone

from governance.sealing.configured import witness_from
from governance.sealing.models import LedgerVerification
from governance.sealing.services.witnesses import witness_push
from governance.sealing.tasks import ledger_verify_task
from tests.cast import Cast
from tests.governance.admin.support import browser
from tests.governance.ledger.record import sealed, tampered, witness_in, witnessed

pytestmark = pytest.mark.django_db(transaction=True)
VERIFICATIONS = "/admin/governance/ledgerverification/"
WITNESSES = "/admin/governance/witnessreceipt/"
MAY_ASK = {"operator": 302, "administrator": 302, "auditor": 403, "nobody": 403}
SEEN_BY = {"operator": 200, "auditor": 200, "administrator": 200, "reviewer": 403, "owner": 403, "nobody": 403}


@pytest.mark.parametrize(("who", "status"), SEEN_BY.items())
@pytest.mark.parametrize("page", [VERIFICATIONS, WITNESSES, "/admin/governance/readaccess/"])
def test_auditors_operators_and_administrators_see_the_pages(cast: Cast, page: str, who: str, status: int) -> None:
    assert browser(cast, who).get(page).status_code == status


@pytest.mark.parametrize(
    ("who", "status"), {"operator": 302, "administrator": 302, "auditor": 403, "nobody": 403}.items()
)
def test_operators_ask_for_a_verification(cast: Cast, who: str, status: int) -> None:
    assert browser(cast, who).post(f"{VERIFICATIONS}ask/").status_code == status
    assert LedgerVerification.objects.count() == (status == 302)


def test_a_verification_is_worked_off_once_and_its_result_is_shown(cast: Cast, tmp_path: Path, settings: Any) -> None:
    settings.LEDGER_WITNESSES = (tmp_path / "heads.jsonl").as_uri()
    size = sealed(4)
    console = browser(cast, "operator")
    answer = console.post(f"{VERIFICATIONS}ask/")
    again = console.post(f"{VERIFICATIONS}ask/")
    assert answer["Location"] == again["Location"], "one at a time"
    asked = LedgerVerification.objects.get()
    waiting = console.get(f"{VERIFICATIONS}{asked.id}/progress/").json()
    assert waiting == {"done": 0, "total": 0, "share": 0, "waiting": True}
    ledger_verify_task(str(asked.id))
    ledger_verify_task(str(asked.id))
    page = console.get(answer["Location"]).content.decode()
    assert f"{size} entries under" in page
    assert console.get(f"{VERIFICATIONS}{asked.id}/progress/").json()["waiting"] is False


@pytest.mark.tampers
def test_what_does_not_fit_is_shown(cast: Cast) -> None:
    sealed(4)
    tampered("UPDATE governance_ledgerentry SET reason_code = 'x' WHERE action = 'organization.changed'")
    console = browser(cast, "administrator")
    where = console.post(f"{VERIFICATIONS}ask/")["Location"]
    ledger_verify_task(str(LedgerVerification.objects.get().id))
    assert "was changed" in console.get(where).content.decode()
    assert "does not fit" in console.get(VERIFICATIONS).content.decode()


def test_a_witness_that_is_behind_is_red(cast: Cast, settings: Any, tmp_path: Path) -> None:
    witness = witness_in(tmp_path)
    settings.LEDGER_WITNESSES = f"{witness.path.as_uri()},http://127.0.0.1:9/away"
    settings.WITNESS_LIMIT_HEADS = 0
    sealed(3)
    follows = witness_from(url=witness.path.as_uri())
    assert witness_push(at=timezone.now(), witness=follows).stored
    witnessed(witness)
    page = browser(cast, "auditor").get(WITNESSES).content.decode()
    assert page.count('hp-badge hp-bad">behind') == 1
    assert page.count('hp-badge hp-good">follows') == 1
