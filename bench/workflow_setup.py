"""Publishes the measured workflows in the demo organization, opens their contracts, and prints the ids."""

import json
import os

import django


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "bench.settings")
    django.setup()
    from django.utils import timezone

    from bench.workflow_flows import FLOWS
    from governance.tenancy.models import Organization
    from reasoncodes.base.tenancy import every_tenant

    with every_tenant():
        organization = Organization.objects.get(slug="demo")
        # The limit of runs per minute must not stop the benchmark. Its counter is still taken, because it costs time.
        Organization.objects.filter(id=organization.id).update(max_runs_per_min=1_000_000)
        organization.refresh_from_db()
        found = {flow: publish(organization, flow, FLOWS[flow], timezone.now()) for flow in FLOWS}
    print(json.dumps(found))


def publish(organization, flow, document, at):  # type: ignore[no-untyped-def]
    from governance.contracts.rules.documents import AREAS
    from governance.contracts.selectors import contract_documents
    from governance.contracts.services.contracts import contract_change, contract_open
    from governance.contracts.services.readiness import readiness_decide
    from governance.contracts.states import ReadinessVerdict
    from governance.people.models import ServiceAccount, User
    from governance.tenancy.services import product_create
    from reasoncodes.base.actors import SYSTEM, Actor, ActorKind
    from workflows.definitions.services.create import definition_create
    from workflows.definitions.services.publish import definition_publish

    def person(username: str) -> Actor:
        return Actor(ActorKind.PERSON, User.objects.get(username=username).id, frozenset({organization.id}))

    operator, slug = person("operator"), f"bench-{flow}-{os.getpid()}"
    product = product_create(actor=SYSTEM, at=at, organization=organization, slug=slug, name=flow)
    draft = definition_create(
        actor=operator,
        at=at,
        organization=organization,
        document=document,
        slug=slug,
        product_id=product.id,
    )
    contract = definition_publish(actor=operator, at=at, definition_id=draft.id).contract
    throttles = contract_documents(contract=contract)["throttles_and_misuse"]
    wide = [row | {"limit": 1_000_000} for row in throttles["limits"]]
    documents = {"throttles_and_misuse": throttles | {"limits": wide}}
    contract_change(actor=operator, at=at, contract_id=contract.id, core={}, documents=documents)
    for area in AREAS:
        readiness_decide(
            actor=person(f"owner_{area.owner_group.replace('-', '_')}"),
            at=at,
            contract_id=contract.id,
            area=area.name,
            verdict=ReadinessVerdict.APPROVE,
            rationale="Measured",
        )
    contract_open(actor=operator, at=at, contract_id=contract.id)
    account = ServiceAccount.objects.get(organization=organization, slug="workflows")
    return {"organization": str(organization.id), "product": str(product.id), "account": str(account.id)}


if __name__ == "__main__":
    main()
