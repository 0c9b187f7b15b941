"""Wiring of the app: registers what lower apps call by name (ledger, text check, usage count), the acts that need two
people, where sealed texts are stored, the handlers of retention, and the region profiles, which are adopted after every
migrate."""

from typing import Any

from django.apps import AppConfig
from django.db.models.signals import post_migrate
from django.utils import timezone


class GovernanceConfig(AppConfig):
    name = "governance"
    verbose_name = "Governance"

    def ready(self) -> None:
        _acts_register()
        _sealed_columns_register()
        _lower_apps_serve()
        _retention_register()
        # First: what the handlers after it write is bound like everything else.
        post_migrate.connect(bind_governed_tables, sender=self)
        post_migrate.connect(adopt_region_profiles, sender=self)
        post_migrate.connect(record_suspended_accounts, sender=self)
        # Last: it records what the migrations and the receivers before it have left.
        post_migrate.connect(adopt_guards, sender=self)


# The functions below import inside, because models are not loaded yet when this module is.


def _acts_register() -> None:
    """Every act of this app that needs two people. The room of workflows registers its own."""
    from governance.authority.hooks import register_act
    from governance.authority.services import acts_content, acts_identity, acts_people, acts_schedule, acts_sign_in
    from governance.authority.services.acts_record import RecordAccept
    from governance.authority.services.acts_witness import WitnessChange

    register_act("role.give", acts_people.RoleGive())
    register_act("person.create", acts_people.PersonCreate())
    register_act("person.reactivate", acts_people.PersonReactivate())
    register_act("service_account.create", acts_people.ServiceAccountCreate())
    register_act("service_account.reinstate", acts_people.ServiceAccountReinstate())
    register_act("api_key.issue", acts_people.ApiKeyIssue())
    register_act("schedule.change", acts_schedule.ScheduleChangeAct())
    register_act("service_account.responsible", acts_sign_in.ServiceAccountResponsible())
    register_act("sign_in_rules.change", acts_sign_in.SignInRulesChange())
    register_act("invitation.show", acts_sign_in.INVITATION_SHOW)
    register_act("password_reset.issue", acts_sign_in.PASSWORD_RESET_ISSUE)
    register_act("witness.change", WitnessChange())
    register_act("record.accept", RecordAccept())
    register_act("policy.publish", acts_content.PolicyPublish())
    register_act("caps.raise", acts_content.CapsRaise())
    register_act("identity_provider.change", acts_identity.IdentityProviderChange())


def _sealed_columns_register() -> None:
    """Where sealed texts are stored, so that `rotate_secrets` finds them."""
    from governance.identity.selectors import SECRET as IDENTITY_PROVIDER_SECRET
    from governance.outside.secret_box import SECOND_FACTOR, SealedColumn, register_sealed
    from governance.people.services.sign_in_mail import PURPOSE as PASSWORD_RESET_PURPOSE

    register_sealed(
        SealedColumn("mfa.Authenticator", "data", SECOND_FACTOR, json_key="secret"),  # of code apps
        SealedColumn("mfa.Authenticator", "data", SECOND_FACTOR, json_key="seed"),  # of recovery codes
        SealedColumn("governance.PasswordResetRequest", "typed_sealed", PASSWORD_RESET_PURPOSE),
        SealedColumn("governance.IdentityProvider", "secret_sealed", IDENTITY_PROVIDER_SECRET),
    )


def _lower_apps_serve() -> None:
    """What the vocabulary calls by name, because it may not import this app."""
    from governance.boundary.services import text_check
    from governance.ledger.selectors import reason_code_usage_count
    from governance.ledger.services import ledger_append
    from reasoncodes.base.registry import register_recorder, register_text_check, register_usage_counter

    register_recorder(ledger_append)
    register_usage_counter(reason_code_usage_count)
    register_text_check(text_check)


def _retention_register() -> None:
    """What is exported, deleted and erased."""
    from governance.evidence.services.bundles import evidence_erase
    from governance.identity.services.erasing import provider_person_erase
    from governance.people.services.erasing import sign_in_links_erase
    from governance.retention.hooks import register_export, register_kind
    from governance.retention.selectors.subjects import LEFT_OUT, PERSON, governance_export_tables
    from governance.retention.services.deletion import deletion_finish
    from governance.retention.services.erasure import on_erased, on_erasure_finished

    register_kind(PERSON)
    register_export(governance_export_tables(), left_out=LEFT_OUT)
    on_erasure_finished(deletion_finish)
    on_erased(evidence_erase)
    on_erased(sign_in_links_erase)
    on_erased(provider_person_erase)


def bind_governed_tables(**_: Any) -> None:
    from governance.record.services.install import binding_install
    from reasoncodes.base.tenancy import every_tenant

    with every_tenant():
        binding_install(at=timezone.now())


def adopt_region_profiles(**_: Any) -> None:
    from governance.regions.services import region_profiles_adopt

    region_profiles_adopt(at=timezone.now())


def record_suspended_accounts(**_: Any) -> None:
    from governance.people.services.accounts import service_accounts_suspended_record
    from reasoncodes.base.tenancy import every_tenant

    with every_tenant():
        service_accounts_suspended_record(at=timezone.now())


def adopt_guards(**_: Any) -> None:
    from governance.record.selectors.manifest import manifest_possible
    from governance.record.services.manifest import guards_adopt

    # `migrate governance 0001` goes back behind the table.
    if manifest_possible():
        guards_adopt(at=timezone.now())
