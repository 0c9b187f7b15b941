"""Sets the tenant scope for the console's requests, and makes sure that no request inherits the scope of another
one."""

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse

from governance.people.rules.roles import VIEW
from governance.people.selectors.people import organizations_where
from reasoncodes.base.tenancy import enter_everything, enter_scope, leave_scope

CONSOLE = "/admin/"


class TenantScopeMiddleware:
    """The API sets its scope when a credential is accepted; the console's is what the signed-in person may see."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        # Threads are reused. A scope that an earlier request left behind would show its rows to this one.
        leave_scope()
        try:
            if request.path.startswith(CONSOLE):
                self._enter_console(request)
            return self.get_response(request)
        finally:
            leave_scope()

    @staticmethod
    def _enter_console(request: HttpRequest) -> None:
        user = request.user
        if not user.is_authenticated:
            return
        # An administrator of the installation sees every organization in the console. In the API a superuser sees none
        # by that alone.
        if user.is_superuser:
            enter_everything()
        else:
            enter_scope(organizations_where(user=user, permission=VIEW))
