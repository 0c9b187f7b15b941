"""A human review of a workflow step is signed where the contract of its run asks for it."""

from attempts.reviews.models import Review
from reasoncodes.base.tenancy import every_tenant
from tests.attempts.reviews.support import Clinic, do, problem, status_of
from tests.attempts.reviews.test_signed_votes import signed
from tests.authenticator import SoftKey, register
from tests.cast import Cast
from tests.workflows.world import World, people


def judged(cast: Cast) -> Review:
    """The open review of a run's step, whose contract asks for signatures."""
    world = World(cast, people())
    instance = world.start()
    review = world.review(instance)
    assert review.contract_id == instance.contract_id
    with every_tenant():
        Review.objects.filter(id=review.id).update(contract=Clinic(cast, signature="passkey").contract)
        return Review.objects.get(id=review.id)


def test_an_unsigned_judgement_is_refused(cast: Cast) -> None:
    review = judged(cast)
    assert problem(do(cast.session(cast.reviewer), review, "confirm")) == (403, "signature-needed")
    assert status_of(review)[0] == "requested"


def test_a_signed_judgement_counts(cast: Cast) -> None:
    review, key = judged(cast), SoftKey()
    register(cast.reviewer, key)
    answer = signed(cast.session(cast.reviewer), review, key, "confirm")
    assert answer.status_code == 200, answer.content
    assert answer.json()["votes"][0]["signature"]["signed_by_person"]
    assert status_of(review)[0] == "confirmed"
