"""Rules about definitions as SQL fragments, each written once. Statements are composed from them."""

from workflows.definitions.states import DefinitionStatus


def definition_runs_sql(*, organization: str, product: str) -> str:
    """The definition that a new case of this product follows: the product's own active one that takes cases, or else
    the one for the whole organization."""
    # EXISTS: without it the id of another organization's product would start a run under the organization-wide
    # definition.
    return f"""
    SELECT * FROM workflows_workflowdefinition
    WHERE organization_id = {organization} AND state = '{DefinitionStatus.ACTIVE.value}' AND NOT is_template
      AND takes_cases
      AND (product_id = {product} OR product_id IS NULL)
      AND EXISTS (SELECT 1 FROM governance_product WHERE id = {product} AND organization_id = {organization})
    ORDER BY product_id NULLS LAST LIMIT 1
    """  # noqa: S608


def definition_named_sql(*, organization: str, slug: str, product: str) -> str:
    """The active definition with this slug, whether or not it takes cases; of this product, or of the whole
    organization."""
    return f"""
    SELECT * FROM workflows_workflowdefinition
    WHERE organization_id = {organization} AND slug = {slug} AND state = '{DefinitionStatus.ACTIVE.value}'
      AND NOT is_template AND (product_id = {product} OR product_id IS NULL)
      AND EXISTS (SELECT 1 FROM governance_product WHERE id = {product} AND organization_id = {organization})
    LIMIT 1
    """  # noqa: S608
