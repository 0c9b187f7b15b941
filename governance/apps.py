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
        # Imported here, because models are not loaded yet when this module is.
        from governance.authority.hooks import register_act
        from governance.authority.services.acts_content import CapsRaise, PolicyPublish
        from governance.authority.services.acts_identity import IdentityProviderChange
        from governance.authority.services.acts_people import (
            ApiKeyIssue,
            PersonCreate,
            PersonReactivate,
            RoleGive,
            ServiceAccountCreate,
            ServiceAccountReinstate,
        )
        from governance.authority.services.acts_schedule import ScheduleChangeAct
        from governance.authority.services.acts_sign_in import (
            INVITATION_SHOW,
            PASSWORD_RESET_ISSUE,
            ServiceAccountResponsible,
            SignInRulesChange,
        )
        from governance.authority.services.acts_witness import WitnessChange
        from governance.boundary.services import text_check
        from governance.evidence.services.bundles import evidence_erase
        from governance.identity.selectors import SECRET as IDENTITY_PROVIDER_SECRET
        from governance.identity.services.erasing import provider_person_erase
        from governance.ledger.selectors import reason_code_usage_count
        from governance.ledger.services import ledger_append
        from governance.outside.secret_box import SECOND_FACTOR, SealedColumn, register_sealed
        from governance.people.services.erasing import sign_in_links_erase
        from governance.people.services.sign_in_mail import PURPOSE as PASSWORD_RESET_PURPOSE
        from governance.retention.hooks import register_export, register_kind
        from governance.retention.selectors.subjects import LEFT_OUT, PERSON, governance_export_tables
        from governance.retention.services.deletion import deletion_finish
        from governance.retention.services.erasure import on_erased, on_erasure_finished
        from reasoncodes.base.registry import register_recorder, register_text_check, register_usage_counter

        register_act("role.give", RoleGive())
        register_act("person.create", PersonCreate())
        register_act("person.reactivate", PersonReactivate())
        register_act("service_account.create", ServiceAccountCreate())
        register_act("service_account.reinstate", ServiceAccountReinstate())
        register_act("api_key.issue", ApiKeyIssue())
        register_act("schedule.change", ScheduleChangeAct())
        register_act("service_account.responsible", ServiceAccountResponsible())
        register_act("sign_in_rules.change", SignInRulesChange())
        register_act("invitation.show", INVITATION_SHOW)
        register_act("password_reset.issue", PASSWORD_RESET_ISSUE)
        register_act("witness.change", WitnessChange())
        register_act("policy.publish", PolicyPublish())
        register_act("caps.raise", CapsRaise())
        register_act("identity_provider.change", IdentityProviderChange())
        register_recorder(ledger_append)
        register_sealed(
            SealedColumn("mfa.Authenticator", "data", SECOND_FACTOR, json_key="secret"),  # of code apps
            SealedColumn("mfa.Authenticator", "data", SECOND_FACTOR, json_key="seed"),  # of recovery codes
            SealedColumn("governance.PasswordResetRequest", "typed_sealed", PASSWORD_RESET_PURPOSE),
            SealedColumn("governance.IdentityProvider", "secret_sealed", IDENTITY_PROVIDER_SECRET),
        )
        register_usage_counter(reason_code_usage_count)
        register_text_check(text_check)
        register_kind(PERSON)
        register_export(governance_export_tables(), left_out=LEFT_OUT)
        on_erasure_finished(deletion_finish)
        on_erased(evidence_erase)
        on_erased(sign_in_links_erase)
        on_erased(provider_person_erase)
        post_migrate.connect(adopt_region_profiles, sender=self)
        post_migrate.connect(record_suspended_accounts, sender=self)
        # Last: it records what the migrations and the receivers before it have left.
        post_migrate.connect(adopt_guards, sender=self)


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
