"""Rules of workflows that are said in SQL, each once; statements are put together from these fragments."""

from workflows.definitions.states import DefinitionStatus


def definition_runs_sql(*, organization: str, product: str) -> str:
    """The definition that a new run of this product follows: the product's own active one, or else the one for the
    whole organization. Nothing for a product of somebody else's: its id alone must not start a run here."""
    return f"""
    SELECT * FROM workflows_workflowdefinition
    WHERE organization_id = {organization} AND state = '{DefinitionStatus.ACTIVE.value}' AND NOT is_template
      AND (product_id = {product} OR product_id IS NULL)
      AND EXISTS (SELECT 1 FROM governance_product WHERE id = {product} AND organization_id = {organization})
    ORDER BY product_id NULLS LAST LIMIT 1
    """  # noqa: S608
