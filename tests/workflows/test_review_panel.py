"""The review card of a workflow's step shows the case: where its run stands, as a picture and in words."""

from tests.attempts.reviews.pages import browser, page
from tests.attempts.reviews.support import Clinic
from tests.cast import Cast
from tests.workflows.world import World, people


def test_a_human_step_shows_its_run(cast: Cast) -> None:
    world = World(cast, people())
    instance = world.start()
    text = browser(cast.reviewer).get(page(world.review(instance))).content.decode()
    assert str(instance.case_id) in text
    assert "The case so far" in text
    assert "<em>asks you</em>" in text
    assert "wf-status-waiting_approval" in text
    assert " style=" not in text


def test_an_attempt_that_stands_alone_has_no_case(cast: Cast) -> None:
    assert "The case so far" not in browser(cast.reviewer).get(page(Clinic(cast).hold())).content.decode()
