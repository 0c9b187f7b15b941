"""For which regions of record the contract may be used, and where it is stricter than their profiles."""

from governance.contracts.rules.documents.area import Area
from governance.contracts.rules.documents.schema_parts import array, choice, document, integer

REGION_CODES = ("US", "AE", "SA", "KW", "NG", "KE", "RW", "GH", "EU")
FOLLOW_PROFILE = "follow_profile"
# The stricter choice beside `follow_profile`; there is no looser one on purpose.
STRICTER = {
    "residency": "in_country_only",
    "failover": "none",
    "export": "within_7_days",
    "deletion": "within_7_days",
    "legal_hold": "compliance_releases",
}
_TITLE = "Regional attempt compliance"


def _stance(field: str, description: str) -> dict[str, object]:
    return choice(description=description, options=(FOLLOW_PROFILE, STRICTER[field]))


AREA = Area(
    name="regional_compliance",
    owner_group="global-compliance",
    title=_TITLE,
    description=(
        "Decides for which regions of record the contract may be used, and where it is stricter than the "
        "regional profile in force: longer retention, storage in the country only, no failover, sooner "
        "answers, or a stricter rule for releasing legal holds. A contract can tighten a profile and never "
        "loosen it."
    ),
    schema=document(
        title=_TITLE,
        fields={
            "regions": array(
                description="Regions of record accepted; an organization of any other region is denied.",
                items=choice(description="Region code.", options=REGION_CODES),
                min_items=1,
                max_items=len(REGION_CODES),
            ),
            "retention_years": integer(
                description=(
                    "Years records are kept, at least every listed region's default; null follows the profile."
                ),
                minimum=1,
                maximum=100,
                nullable=True,
            ),
            "residency": _stance("residency", "Where records may be stored; in_country_only allows no other region."),
            "failover": _stance("failover", "Where a standby may run; none allows no standby at all."),
            "export": _stance("export", "How soon an export is answered; within_7_days unless the profile is sooner."),
            "deletion": _stance(
                "deletion",
                "How soon a deletion request is answered; within_7_days unless the profile is sooner. "
                "Retention and legal holds still take precedence over deletion.",
            ),
            "legal_hold": _stance(
                "legal_hold",
                (
                    "Who releases a legal hold; compliance_releases needs one of the two people to be "
                    "from global-compliance."
                ),
            ),
        },
    ),
    default={
        "regions": list(REGION_CODES),
        "retention_years": None,
        "residency": FOLLOW_PROFILE,
        "failover": FOLLOW_PROFILE,
        "export": FOLLOW_PROFILE,
        "deletion": FOLLOW_PROFILE,
        "legal_hold": FOLLOW_PROFILE,
    },
)
