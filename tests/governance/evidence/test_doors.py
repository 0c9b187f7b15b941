"""The doors to evidence: API, command and console; who may, who may not, and bytes that were altered."""

import io
import json
import random
import zipfile
from io import StringIO
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.core.files.base import ContentFile
from django.core.files.storage import storages
from django.core.management import CommandError, call_command
from django.utils import timezone

from governance.contracts.rules.documents import OWNER_GROUPS
from governance.evidence.models import EvidenceBundle
from governance.evidence.states import EvidenceKind
from governance.ledger.models import LedgerEntry
from governance.people.models import User
from governance.violations.models import GovernanceViolation
from reasoncodes.base.tenancy import every_tenant
from sdk import holdpoint_verify as verifier
from tests.attempts.test_intake import body, post
from tests.cast import Cast
from tests.governance.admin.support import browser
from tests.governance.evidence.support import allowed, build, built, files_of, fresh, released_and_done, request, stored
from tests.governance.ledger.sealing import KEY, seal_all
from tests.governance.support import in_parallel
from tests.governed import open_contract
from tests.workflows.run_support import in_status
from tests.workflows.running import Running

pytestmark = pytest.mark.django_db(transaction=True)


def url(attempt_id: Any) -> str:
    return f"/api/v1/attempts/{attempt_id}/evidence"


def content(answer: Any) -> bytes:
    return b"".join(answer.streaming_content)


def status(answer: Any) -> int:
    """Of an answer whose file nobody reads."""
    answer.close()
    return int(answer.status_code)


def page(bundle: EvidenceBundle, *rest: str) -> str:
    return "/".join([f"/admin/governance/evidencebundle/{bundle.id}", *rest, ""])


def test_asking_is_202_with_an_address_and_asking_again_is_200_and_the_same(cast: Cast) -> None:
    attempt_id = allowed(cast)
    caller = cast.api("attempts:create")
    assert caller.get(url(attempt_id)).status_code == 404
    first = caller.post(url(attempt_id))
    assert first.status_code == 202
    assert first["Location"] == f"/api/v1/evidence/{first.json()['id']}"
    assert (first.json()["state"], first.json()["sha256"], first.json()["download"]) == ("requested", "", None)
    again = caller.post(url(attempt_id))
    assert (again.status_code, again.json()["id"]) == (200, first.json()["id"])
    not_yet = caller.get(f"{first['Location']}/download")
    assert (not_yet.status_code, not_yet["Retry-After"]) == (409, "2")
    assert not_yet.json()["type"].endswith("/evidence-not-ready")
    bundle_id = UUID(first.json()["id"])
    build(bundle_id)
    assert caller.get(first["Location"]).json()["progress"] == "waiting for the sealer"
    seal_all()
    build(bundle_id)
    shown = caller.get(url(attempt_id)).json()
    assert (shown["state"], shown["progress"]) == ("ready", "")
    assert caller.post(url(attempt_id)).status_code == 200


def test_the_file_comes_by_its_address_and_by_the_subjects_with_accept_zip(cast: Cast) -> None:
    bundle = built(cast, released_and_done(cast))
    reader = cast.api("ledger:read")
    direct = reader.get(f"/api/v1/evidence/{bundle.id}/download")
    assert (direct.status_code, direct["Content-Type"]) == (200, "application/zip")
    assert direct["ETag"] == f'"{bundle.sha256}"'
    assert "attachment" in direct["Content-Disposition"]
    data = content(direct)
    assert len(data) == int(direct["Content-Length"]) == bundle.size
    assert verifier.verify(data, public_key=KEY.verifier).valid
    by_subject = reader.get(url(bundle.subject_id), HTTP_ACCEPT="application/zip")
    assert content(by_subject) == data
    known = reader.get(f"/api/v1/evidence/{bundle.id}/download", HTTP_IF_NONE_MATCH=direct["ETag"])
    assert known.status_code == 304


def test_the_key_that_the_api_publishes_is_the_one_that_the_bundle_is_signed_with(cast: Cast) -> None:
    data = stored(built(cast, allowed(cast)))
    keys = cast.api("ledger:read").get("/api/v1/ledger/public-key").json()["keys"]
    assert verifier.verify(data, public_key=keys[0]["verifier_key"]).valid


def test_a_run_has_the_same_doors(cast: Cast) -> None:
    instance = in_status(Running(cast), "completed")
    address = f"/api/v1/workflow-instances/{instance.id}/evidence"
    client = cast.api("orchestrator:read-instances")
    asked = client.post(address)
    assert asked.status_code == 202
    build(UUID(asked.json()["id"]))
    seal_all()
    build(UUID(asked.json()["id"]))
    assert verifier.verify(content(client.get(address, HTTP_ACCEPT="application/zip"))).valid
    assert content(client.get(client.get(address).json()["download"]))
    assert cast.api("attempts:create").get(asked["Location"]).status_code == 403
    assert cast.api("orchestrator:read-instances", organization=cast.other).post(address).status_code == 404


WHO = {  # GET, POST
    "operator": (200, 200),
    "auditor": (200, 403),
    "reviewer": (403, 403),
    "nobody": (403, 403),
    "other_operator": (404, 404),
}


@pytest.mark.parametrize("who", WHO)
def test_people_read_with_the_auditors_permission_and_ask_with_the_operators(cast: Cast, who: str) -> None:
    bundle = built(cast, allowed(cast))
    person: User = getattr(cast, who)
    session, (read, ask) = cast.session(person), WHO[who]
    assert session.get(url(bundle.subject_id)).status_code == read
    assert session.get(f"/api/v1/evidence/{bundle.id}").status_code == read
    assert status(session.get(f"/api/v1/evidence/{bundle.id}/download")) == read
    assert session.post(url(bundle.subject_id)).status_code == ask


KEYS = {
    "attempts:create": (200, 200),
    "ledger:read": (200, 200),
    "governance:read": (403, 403),
    "orchestrator:read-instances": (403, 403),
}


@pytest.mark.parametrize("scope", KEYS)
def test_keys_need_a_scope_that_reads_the_subject(cast: Cast, scope: str) -> None:
    bundle = built(cast, allowed(cast))
    client, (read, ask) = cast.api(scope), KEYS[scope]
    assert client.get(url(bundle.subject_id)).status_code == read
    assert client.post(url(bundle.subject_id)).status_code == ask
    assert status(client.get(f"/api/v1/evidence/{bundle.id}/download")) == read


def test_another_organizations_bundle_does_not_exist_and_the_try_is_a_violation(cast: Cast) -> None:
    bundle = built(cast, allowed(cast))

    def stranger() -> Any:
        """A new one each time: whoever tries too often is suspended."""
        return cast.api(organization=cast.other)

    for address in (url(bundle.subject_id), f"/api/v1/evidence/{bundle.id}", f"/api/v1/evidence/{bundle.id}/download"):
        assert stranger().get(address).status_code == 404
    assert stranger().post(url(bundle.subject_id)).status_code == 404
    assert stranger().get("/api/v1/evidence").json()["results"] == []
    assert stranger().get(f"/api/v1/evidence/{uuid4()}").status_code == 404
    with every_tenant():
        assert GovernanceViolation.objects.filter(kind="cross_tenant").count() == 4
        assert EvidenceBundle.objects.count() == 1
    listed = cast.api("ledger:read").get("/api/v1/evidence", {"state": "ready"}).json()["results"]
    assert [row["id"] for row in listed] == [str(bundle.id)]


def test_a_bundle_reveals_nothing_of_another_organization(cast: Cast) -> None:
    """Two organizations do the same at the same time; of the other nothing but hashes is in the zip."""
    theirs = Cast()
    theirs.__dict__["organization"] = cast.other
    theirs.__dict__["operator"] = cast.person("oscar", "operator", organization=cast.other)
    roles = [f"owner:{group}" for group in OWNER_GROUPS]
    theirs.__dict__["owner"] = cast.person("zebulon", *roles, organization=cast.other)
    open_contract(theirs, slug="secret-contract")
    client = cast.api("attempts:create", organization=cast.other)
    address = "/api/v1/execution/secret-contract/1/attempts"
    secret = body(patient_context_ref="ctx-secret-9", action={"target_ref": "case-secret-7"})
    other = post(client, secret, key="key-secret-1", url=address).json()["id"]
    attempt_id = released_and_done(cast)
    assert client.get(f"/api/v1/attempts/{attempt_id}").status_code == 404  # their violation names our attempt
    data = stored(built(cast, attempt_id)).decode("latin-1")
    with every_tenant():
        foreign = LedgerEntry.objects.filter(organization=cast.other)
        ids = {
            str(value) for row in foreign.values_list("id", "subject_id", "organization_id") for value in row if value
        }
        hashes = {bytes(one).hex() for one in foreign.values_list("payload_sha256", flat=True)}
        refs = {ref for ref in foreign.values_list("actor_ref", flat=True) if ref}
        ours = LedgerEntry.objects.filter(organization=cast.organization)
        known = {str(value) for row in ours.values_list("subject_id", "actor_ref") for value in row}
    words = {
        "stranger",
        "Stranger",
        "oscar",
        "zebulon",
        "secret-contract",
        "case-secret-7",
        "ctx-secret-9",
        "key-secret-1",
    }
    seen = {one for one in (ids | hashes | refs | words | {other}) - known if one in data}
    assert seen == set()
    assert str(cast.other.id) not in data
    assert attempt_id


def overwrite(bundle: EvidenceBundle, data: bytes) -> None:
    storages["evidence"].delete(bundle.storage_name)
    storages["evidence"].save(bundle.storage_name, ContentFile(data))


@pytest.mark.parametrize("change", ["bit", "other", "gone"])
def test_bytes_that_are_not_what_was_built_are_never_served_and_are_on_record_once(cast: Cast, change: str) -> None:
    bundle = built(cast, allowed(cast))
    if change == "gone":
        storages["evidence"].delete(bundle.storage_name)
    else:
        data = bytearray(stored(bundle))
        data[random.randrange(len(data))] ^= 1
        overwrite(bundle, bytes(data) if change == "bit" else b"another file")
    reader = cast.api("ledger:read")
    for _ in range(2):
        answer = reader.get(f"/api/v1/evidence/{bundle.id}/download")
        assert answer.status_code == 500
        assert answer.json()["type"].endswith("/evidence-altered")
    with every_tenant():
        assert LedgerEntry.objects.filter(subject_id=bundle.id, action="evidence.altered").count() == 1
        assert GovernanceViolation.objects.count() == 0
    assert reader.get(f"/api/v1/evidence/{bundle.id}").json()["altered_at"] is not None
    again = reader.post(url(bundle.subject_id))
    assert (again.status_code, again.json()["id"] != str(bundle.id)) == (202, True)


def test_bits_flipped_anywhere_in_a_real_bundle_are_caught(cast: Cast) -> None:
    data = stored(built(cast, released_and_done(cast)))
    for _ in range(60):
        changed = bytearray(data)
        place = random.randrange(len(data))
        changed[place] ^= 1 << random.randrange(8)
        assert not verifier.verify(bytes(changed)).valid, place


def test_the_bundle_carries_the_verifier_of_this_repository(cast: Cast) -> None:
    data = stored(built(cast, allowed(cast)))
    copy = files_of(data)["verify.py"].decode()
    assert copy == verifier.copy_source(Path(verifier.__file__).read_text())
    assert "for convenience" in copy.partition('"""')[0], "it says at its top what it is"
    assert "\nIS_COPY = True\n" in copy


def test_two_requests_at_once_get_one_bundle(cast: Cast) -> None:
    attempt_id = allowed(cast)
    first, second = in_parallel(lambda: request(cast, attempt_id).id, lambda: request(cast, attempt_id).id)
    assert first == second
    with every_tenant():
        assert EvidenceBundle.objects.count() == 1
        assert LedgerEntry.objects.filter(action="evidence.requested").count() == 1


def test_two_builders_at_once_make_one_bundle(cast: Cast) -> None:
    bundle = request(cast, allowed(cast))
    in_parallel(lambda: build(bundle.id), lambda: build(bundle.id))
    seal_all()
    in_parallel(lambda: build(bundle.id), lambda: build(bundle.id))
    assert fresh(bundle.id).state == "ready"
    with every_tenant():
        for action in ("evidence.collected", "evidence.built"):
            assert LedgerEntry.objects.filter(subject_id=bundle.id, action=action).count() == 1


# -- the command -------------------------------------------------------------------------------------------------------
def verify(*arguments: str) -> dict[str, Any]:
    out = StringIO()
    call_command("verify_bundle", *arguments, "--json", stdout=out)
    return dict(json.loads(out.getvalue()))


def test_the_command_checks_a_file_and_a_bundle_by_its_id(cast: Cast, tmp_path: Any) -> None:
    bundle = built(cast, released_and_done(cast))
    path = tmp_path / "bundle.zip"
    path.write_bytes(stored(bundle))
    for named in (str(path), str(bundle.id)):
        found = verify(named, "--public-key", KEY.verifier)
        assert found["valid"] is True
        assert "every decision, made again" in found["checked"]
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(CommandError) as refused:
        call_command("verify_bundle", str(path), stdout=StringIO())
    assert refused.value.returncode == 1
    for nothing in ("no-such-file", str(uuid4())):
        with pytest.raises(CommandError) as unusable:
            call_command("verify_bundle", nothing, stdout=StringIO())
        assert unusable.value.returncode == 2


def test_the_command_takes_the_installations_own_keys_and_exports_them(cast: Cast, tmp_path: Any) -> None:
    bundle = built(cast, allowed(cast))
    assert verify(str(bundle.id))["result"] == "authentic"
    keys = tmp_path / "holdpoint-keys.json"
    call_command("export_ledger_keys", output=str(keys), stdout=StringIO())
    assert verify(str(bundle.id), "--keys", str(keys))["result"] == "authentic"
    report = verifier.verify(stored(bundle), public_key=verifier.keys_read(keys.read_text()))
    assert (report.result, report.exit_code) == ("authentic", 0)
    assert verifier.verify(stored(bundle)).exit_code == 3


# -- the console -------------------------------------------------------------------------------------------------------
def test_an_operator_builds_evidence_from_the_attempts_page_and_downloads_it(cast: Cast) -> None:
    attempt_id = released_and_done(cast)
    console = cast.console(cast.operator)
    assert b"Build evidence" in console.get(f"/admin/attempts/attempt/{attempt_id}/change/").content
    asked = console.post(f"/admin/attempts/attempt/{attempt_id}/act/evidence/")
    assert asked.status_code == 302
    with every_tenant():
        bundle = EvidenceBundle.objects.get()
    assert asked["Location"] == page(bundle, "change")
    assert b"waiting for a worker" in console.get(asked["Location"]).content
    assert console.get(page(bundle, "progress")).json() == {"state": "requested", "progress": "waiting for a worker"}
    early = console.get(page(bundle, "download"))
    assert (early.status_code, early["Location"]) == (302, page(bundle, "change"))
    build(bundle.id)
    seal_all()
    build(bundle.id)
    assert b"Download" in console.get(page(bundle, "change")).content
    assert verifier.verify(content(console.get(page(bundle, "download")))).valid
    checked = console.post(page(bundle, "act", "verify"), follow=True).content
    assert b"every decision, made again" in checked
    overwrite(fresh(bundle.id), b"another")
    assert b"changed or removed after it was built" in console.post(page(bundle, "act", "verify"), follow=True).content
    assert b"Altered." in console.get(page(bundle, "change")).content


def test_a_runs_page_has_the_button_too(cast: Cast) -> None:
    instance = in_status(Running(cast), "completed")
    console = cast.console(cast.operator)
    assert b"Build evidence" in console.get(f"/admin/workflows/workflowinstance/{instance.id}/change/").content
    assert console.post(f"/admin/workflows/workflowinstance/{instance.id}/act/evidence/").status_code == 302
    with every_tenant():
        assert EvidenceBundle.objects.get().subject_kind == EvidenceKind.INSTANCE


@pytest.mark.parametrize(
    ("who", "read", "ask"),
    [
        ("operator", 200, 302),
        ("auditor", 200, 403),
        ("administrator", 200, 302),
        ("reviewer", 403, 403),
        ("nobody", 403, 403),
        ("stranger", 404, 404),
        ("anonymous", 302, 302),
    ],
)
def test_the_console_shows_bundles_to_operators_and_auditors_of_the_organization(
    cast: Cast, who: str, read: int, ask: int
) -> None:
    bundle = built(cast, allowed(cast))
    client = browser(cast, who)
    assert status(client.get(page(bundle, "download"))) == read
    with every_tenant():
        EvidenceBundle.objects.update(altered_at=timezone.now())  # asking again would make a new one
    address = f"/admin/attempts/attempt/{bundle.subject_id}/act/evidence/"
    assert client.post(address).status_code == ask
    with every_tenant():
        made = EvidenceBundle.objects.count() - 1
    assert made == (1 if ask == 302 and who != "anonymous" else 0)
    if who != "anonymous":
        listed = client.get("/admin/governance/evidencebundle/")
        assert (str(bundle.subject_id).encode() in listed.content) == (read == 200)


def test_the_zip_is_read_by_others_too(cast: Cast) -> None:
    with zipfile.ZipFile(io.BytesIO(stored(built(cast, allowed(cast))))) as opened:
        assert b"Evidence" in opened.read("report.html")
