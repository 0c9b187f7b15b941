"""Signing in: allauth for password, second factor, passkeys and the providers of organizations; axes for the lockout.
There is no sign-up."""

from datetime import timedelta

from config.env import env

APPS = [
    "django.contrib.humanize",
    "allauth",
    "config.apps.SignInConfig",
    "allauth.mfa",
    "allauth.usersessions",
    "allauth.socialaccount",
    "allauth.socialaccount.providers.openid_connect",
    "allauth.socialaccount.providers.saml",
    "axes",
]

LOGIN_URL = "account_login"
LOGIN_REDIRECT_URL = "/review/"
ACCOUNT_ADAPTER = "governance.identity.web.accounts.SignInAdapter"
ACCOUNT_LOGIN_METHODS = {"username"}
ACCOUNT_SIGNUP_FIELDS = ["username*", "password1*"]
ACCOUNT_EMAIL_VERIFICATION = "none"
ACCOUNT_EMAIL_NOTIFICATIONS = False
ACCOUNT_SESSION_REMEMBER = True  # sessions last SESSION_COOKIE_AGE
ACCOUNT_LOGOUT_REDIRECT_URL = "/accounts/login/"
ACCOUNT_REAUTHENTICATION_TIMEOUT = 300
ACCOUNT_FORMS = {
    "login": "governance.people.web.forms.SignInForm",
    "change_password": "governance.people.web.forms.PasswordChangeForm",
}
# axes stops guessing, because its count is in the database and so the same in every process. allauth counts per
# process; these limits are far above.
ACCOUNT_RATE_LIMITS = {"login": "300/m/ip", "login_failed": "120/m/ip,60/300s/key", "reauthenticate": "60/m/user"}
ALLAUTH_TRUSTED_PROXY_COUNT = env.int("HOLDPOINT_TRUSTED_PROXIES", default=0)

MFA_ADAPTER = "governance.people.web.accounts.SecondFactorAdapter"
MFA_SUPPORTED_TYPES = ["totp", "webauthn", "recovery_codes"]
MFA_PASSKEY_LOGIN_ENABLED = True
MFA_TOTP_ISSUER = "Holdpoint"
MFA_TOTP_TOLERANCE = 1
MFA_ALLOW_UNVERIFIED_EMAIL = True
MFA_RATE_LIMITS = {"webauthn_login": "300/m/ip"}
MFA_FORMS = {
    "authenticate": "governance.people.web.forms.CodeForm",
    "reauthenticate": "governance.people.web.forms.CodeAgainForm",
    "add_webauthn": "governance.people.web.forms.PasskeyForm",
}

# By username and address together: a lock by username alone would let anybody lock anybody out, and by address alone
# would lock whole offices.
AXES_FAILURE_LIMIT = 5
AXES_COOLOFF_TIME = timedelta(minutes=15)
AXES_LOCKOUT_PARAMETERS = [["username", "ip_address"]]
AXES_LOCKOUT_TEMPLATE = "account/locked.html"
AXES_RESET_ON_SUCCESS = True
# Otherwise an attacker who keeps trying would keep the person out for ever.
AXES_RESET_COOL_OFF_ON_FAILURE_DURING_LOCKOUT = False
AXES_DISABLE_ACCESS_LOG = True
AXES_ENABLE_ADMIN = False
AXES_VERBOSE = False
AXES_CLIENT_IP_CALLABLE = "governance.people.web.accounts.client_ip"
# Hashed: the table keeps what was typed, and people type passwords into the wrong field.
AXES_USERNAME_CALLABLE = "governance.people.web.accounts.lockout_username"
AXES_SENSITIVE_PARAMETERS = ["login", "username", "password", "code", "credential", "csrfmiddlewaretoken", "ip_address"]

# axes' middleware runs inside ours (config.middleware.people), which the check does not see.
SILENCED_SYSTEM_CHECKS = ["axes.W002"]

# Days after which an API key ends if nobody said when. A key that is forgotten must not work for ever.
API_KEY_DAYS = env.int("HOLDPOINT_API_KEY_DAYS", default=365)
# Whether votes on contracts of high risk are signed with a passkey where the contract does not say. On in production.
SIGNED_APPROVALS = env.bool("HOLDPOINT_SIGNED_APPROVALS", default=False)

# Seconds on the review pages in which an answer can be taken back before it counts; 0: it counts at once.
REVIEW_HOLD_BACK_SECONDS = max(0, min(30, env.int("HOLDPOINT_REVIEW_HOLD_BACK_SECONDS", default=5)))

CONFIRM_DRILL_DAYS = env.int("HOLDPOINT_CONFIRM_DRILL_DAYS", default=365)
# Minutes after which a person must sign in again before they decide on an action of high risk.
STEP_UP_MINUTES = env.int("HOLDPOINT_STEP_UP_MINUTES", default=15)

# Kinds of roles that need a second factor everywhere: administrator, operator, reviewer, owner, auditor. Production has
# its own default. An organization's sign-in rules can add kinds.
SECOND_FACTOR_ROLES = env.list("HOLDPOINT_SECOND_FACTOR_ROLES", default=[])
# How long a one-time link works: an invitation, and a link for a new password.
INVITATION_HOURS = env.int("HOLDPOINT_INVITATION_HOURS", default=72)
PASSWORD_RESET_MINUTES = env.int("HOLDPOINT_PASSWORD_RESET_MINUTES", default=60)

# Organizations' own identity providers. They are rows of governance.identity, so allauth's tables stay empty.
SOCIALACCOUNT_ADAPTER = "governance.identity.web.accounts.ProviderAdapter"
SOCIALACCOUNT_PROVIDERS = {
    "openid_connect": {"provider_class": "governance.identity.web.providers.OidcProvider"},
    "saml": {"provider_class": "governance.identity.web.providers.SamlProvider"},
}
# By a link: the content policy stops a form whose answer leads to another host.
SOCIALACCOUNT_LOGIN_ON_GET = True
SOCIALACCOUNT_STORE_TOKENS = False
SOCIALACCOUNT_EMAIL_AUTHENTICATION = False
# Providers inside the own network: hosts, or host:port, that may be called although their address is not public.
IDENTITY_ALLOW_PRIVATE = env.list("HOLDPOINT_IDENTITY_ALLOW_PRIVATE", default=[])
