"""What the database itself refuses: illegal moves, changes after the draft, changes of the record."""

from django.db import migrations

from governance.contracts.states import CONTRACT_MOVES
from governance.policies.states import POLICY_MOVES
from governance.shutdown.states import SHUTDOWN_MOVES
from governance.sql.guards import legal_moves_only, protect_table

DOCUMENT_GUARD = """
CREATE FUNCTION governance_contractdocument_guard() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    contract_state text;
    row governance_contractdocument;
BEGIN
    row := CASE WHEN TG_OP = 'DELETE' THEN OLD ELSE NEW END;
    SELECT state INTO contract_state FROM governance_contract WHERE id = row.contract_id;
    IF contract_state IS NOT NULL AND contract_state <> 'draft' THEN
        RAISE EXCEPTION 'append-only: documents of a contract that left its draft are immutable' USING ERRCODE = 'HP001';
    END IF;
    RETURN row;
END $$;
CREATE TRIGGER draft_only BEFORE INSERT OR UPDATE OR DELETE ON governance_contractdocument
    FOR EACH ROW EXECUTE FUNCTION governance_contractdocument_guard();
ALTER TABLE governance_contractdocument ENABLE ALWAYS TRIGGER draft_only;
"""


class Migration(migrations.Migration):
    dependencies = [("governance", "0003_decision")]
    operations = [
        protect_table("governance_readinessdecision"),
        protect_table("governance_snapshot"),
        protect_table("governance_enforcementdecision"),
        protect_table("governance_governanceviolation"),
        protect_table("governance_regionprofile"),
        legal_moves_only(
            "governance_contract",
            CONTRACT_MOVES,
            frozen=[
                "organization_id",
                "slug",
                "version",
                "title",
                "effect",
                "risk_tier",
                "adapter",
                "review_owner",
                "policy_slug",
                "snapshot_sha256",
                "opened_at",
            ],
        ),
        legal_moves_only(
            "governance_policy",
            POLICY_MOVES,
            frozen=["organization_id", "slug", "version", "title", "rules", "snapshot_sha256", "published_at"],
        ),
        legal_moves_only(
            "governance_shutdown",
            SHUTDOWN_MOVES,
            frozen=["scope", "organization_id", "target", "drill", "reason_code", "engaged_by_ref", "engaged_at"],
        ),
        migrations.RunSQL(
            sql=DOCUMENT_GUARD,
            reverse_sql="DROP TRIGGER draft_only ON governance_contractdocument;"
            " DROP FUNCTION governance_contractdocument_guard();",
        ),
    ]
