"""The eight steps of Getting started, each with its state and one button."""

from dataclasses import dataclass

from django.urls import reverse

from attempts.lifecycle.selectors.overview import Asked
from governance.contracts.selectors import TEN, SetUp

REVIEW_PAGES = "/review/"


@dataclass(frozen=True, slots=True)
class SetUpStep:
    """`blocked` says what has to happen first. Without it the button is shown, whether the step is done or not."""

    name: str
    title: str
    text: str
    done: bool
    button: str = ""
    url: str = ""
    blocked: str = ""


def set_up_steps(found: SetUp, said: Asked, *, region: str, administrator: bool) -> list[SetUpStep]:
    return [
        _organization(found, region, administrator),
        _people(found),
        _account(found),
        _contract(found),
        _board(found),
        _open(found),
        _call(found, said),
        _review(found, said),
    ]


def _form(found: SetUp, name: str) -> str:
    where = f"?organization={found.organization.id}" if found.organization else ""
    return reverse("console_start_step", args=[name]) + where


def _organization(found: SetUp, region: str, administrator: bool) -> SetUpStep:
    one = found.organization
    title, add = "Create an organization", reverse("admin:governance_organization_add")
    if one is None:
        text = f"Everything else belongs to an organization. Choose {region or 'your region'} as one of its regions."
        why = "" if administrator else "An administrator of the installation has to do this."
        return SetUpStep("organization", title, text, False, "Create it", "" if why else add, why)
    change = reverse("admin:governance_organization_change", args=[one.id])
    if not one.regions:
        return SetUpStep(
            "organization", title, f"{one.name} has no region, so every attempt is denied.", False, "Set it", change
        )
    text = f"{one.name}, in {', '.join(one.regions)}."
    if region and region not in one.regions:
        text += f" This installation runs in {region}."
        text += " Attempts that may not leave the organization's regions are denied here."
    return SetUpStep("organization", title, text, True, "Look at it", change)


def _people(found: SetUp) -> SetUpStep:
    title, blocked = "Add people", "" if found.organization else "Create the organization first."
    if found.has_people:
        text = "Every area has an owner, and there is a reviewer."
    elif found.reviewers == 0 and found.owners_missing:
        text = "You need owners for the ten areas and at least one reviewer. Nobody can approve their own work."
    elif found.owners_missing:
        text = f"Nobody is in {', '.join(found.owners_missing)} yet."
    else:
        text = "There is no reviewer yet, so nobody could decide on held actions."
    return SetUpStep("people", title, text, found.has_people, "Add a person", _form(found, "people"), blocked)


def _account(found: SetUp) -> SetUpStep:
    title, blocked = "Add a service account", "" if found.organization else "Create the organization first."
    if found.account is None:
        text = "The account of the service that will ask. It gets its key in the step “Send the first request”."
        return SetUpStep("account", title, text, False, "Add it", _form(found, "account"), blocked)
    url = reverse("admin:governance_serviceaccount_change", args=[found.account.id])
    return SetUpStep("account", title, f"{found.account.slug} is ready.", True, "Look at it", url)


def _contract(found: SetUp) -> SetUpStep:
    title, blocked = "Draft a contract from a starter", "" if found.organization else "Create the organization first."
    if found.contract is None:
        text = (
            "A contract says what services can ask for and what happens then. Every starter is complete, so you do "
            "not have to write JSON."
        )
        return SetUpStep("contract", title, text, False, "Choose a starter", _form(found, "contract"), blocked)
    url = reverse("admin:governance_contract_change", args=[found.contract.id])
    return SetUpStep("contract", title, f"{found.contract}: {found.contract.title}.", True, "Look at it", url)


def _board(found: SetUp) -> SetUpStep:
    title = "Have the ten areas approved"
    if found.contract is None:
        return SetUpStep(
            "board", title, "The owners read the documents and approve.", False, blocked="Draft the contract first."
        )
    url = reverse("admin:governance_contract_readiness", args=[found.contract.id])
    text = f"{found.approved} of {TEN} areas are approved."
    if not found.is_ready:
        text += " The owners sign in and decide on the board. Nobody can approve a document that they wrote."
    return SetUpStep("board", title, text, found.is_ready, "Readiness board", url)


def _open(found: SetUp) -> SetUpStep:
    title = "Open the contract"
    if found.contract is None or not found.is_ready:
        return SetUpStep(
            "open",
            title,
            "The contract then accepts attempts from the next request on.",
            False,
            blocked="Get the approvals first.",
        )
    url = reverse("admin:governance_contract_act", args=[found.contract.id, "open"])
    if found.is_open:
        look = reverse("admin:governance_contract_change", args=[found.contract.id])
        return SetUpStep("open", title, f"{found.contract} is open.", True, "Look at it", look)
    return SetUpStep("open", title, "All ten areas are approved.", False, "Open it", url)


def _call(found: SetUp, said: Asked) -> SetUpStep:
    title = "Send the first request"
    done = said.attempt is not None
    if not found.is_open:
        return SetUpStep(
            "call", title, "One command for your shell, with a key in it.", done, blocked="Open the contract first."
        )
    if found.account is None:
        return SetUpStep("call", title, "One command for your shell.", done, blocked="Add the service account first.")
    text = (
        f"The newest attempt is {said.attempt.state}."
        if said.attempt
        else "One command for your shell, with a key in it."
    )
    return SetUpStep("call", title, text, done, "Make the line", _form(found, "call"))


def _review(found: SetUp, said: Asked) -> SetUpStep:
    title = "Decide on it in the review queue"
    if said.decided is not None:
        return SetUpStep(
            "review",
            title,
            "A person has decided. You have seen the whole process.",
            True,
            "Review queue",
            REVIEW_PAGES,
        )
    if said.waiting is not None:
        text = "The action waits there for a reviewer. Sign in as a reviewer to decide: operators cannot."
        return SetUpStep("review", title, text, False, "Review queue", REVIEW_PAGES)
    text = (
        "Actions that the policy holds wait there for a reviewer. Actions that are allowed or denied do not appear "
        "there."
    )
    return SetUpStep("review", title, text, False, blocked="Send the request first.")
