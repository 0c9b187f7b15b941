"""`POST /execution/{slug}/{version}/attempts`: the governed door. A plain view: DRF would cost more than the answer."""

import structlog
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.utils.decorators import method_decorator
from django.views import View
from django.views.decorators.csrf import csrf_exempt

from attempts.metrics import REFUSED_AT_THE_DOOR
from attempts.services.intake_door import intake_door
from governance.api.authentication import bearer_secret
from governance.selectors import credential_for_secret
from reasoncodes.errors import AttemptCreationDisabled, CredentialMissing

log = structlog.get_logger("holdpoint.security")


@method_decorator(csrf_exempt, name="dispatch")  # keys only: no cookie gives access here
class AttemptCreateApi(View):
    http_method_names = ["post", "options"]

    def post(self, request: HttpRequest, workflow_slug: str, contract_version: str) -> HttpResponse:
        secret = bearer_secret(request.headers.get("Authorization", ""))
        credential = credential_for_secret(secret=secret, at=timezone.now()) if secret else None
        if credential is None:
            raise CredentialMissing
        try:
            intake_door(credential=credential, workflow_slug=workflow_slug, contract_version=contract_version)
        except AttemptCreationDisabled as refusal:
            REFUSED_AT_THE_DOOR.labels(reason_code=refusal.reason_code).inc()
            log.warning(
                "attempt_refused_unread",
                reason_code=refusal.reason_code,
                organization_id=str(credential.organization.id),
                service_account_id=str(credential.actor.id),
            )
            raise
        return HttpResponse(status=204)
