"""The example of format 2 has nothing to find."""

import pytest

from tests.workflows.definitions.typed import findings, refund

pytestmark = pytest.mark.unit


def test_the_refund_may_be_published() -> None:
    assert findings(refund()) == []
