"""Simulates a person at the review queue: signs in through the console's form, and confirms or overrides reviews.

Only people decide reviews, so an API key cannot do this. It needs a person's name and password, and is off by default.
"""

import threading
from contextlib import closing
from random import Random
from typing import Any

import httpx
import structlog

from sdk.simulator.backoff import module_backoff

log = structlog.get_logger("holdpoint.modules")
POLL_SECONDS = 1.0
QUEUE = {"kind": "human_review", "status": "requested"}


class Reviewer:
    def __init__(self, *, url: str, username: str, password: str, seed: int = 0) -> None:
        self.url, self.username, self.password, self.seed = url, username, password, seed
        self.decided = 0

    def run(self, stop: threading.Event) -> None:
        """Work until `stop`. If the server is away, try again later."""
        failures = 0
        while not stop.is_set():
            try:
                with closing(self._sign_in()) as client:
                    failures = 0
                    self._work(client, stop)
            # Away, or an unexpected answer (no cookie, no JSON): a simulator must not end because of it.
            except (httpx.HTTPError, KeyError, ValueError) as error:
                if failures == 0:
                    log.warning("review_queue_away", error=type(error).__name__)
                stop.wait(module_backoff(failures))
                failures += 1

    def _sign_in(self) -> httpx.Client:
        client = httpx.Client(base_url=self.url, follow_redirects=True, timeout=10, trust_env=False)
        client.get("/admin/login/").raise_for_status()
        # Django's CSRF check wants its token with every POST, and over https a Referer of the same host.
        client.headers["Referer"] = f"{self.url}/admin/login/"
        form = {"username": self.username, "password": self.password}
        client.post("/admin/login/", data=form | {"csrfmiddlewaretoken": client.cookies["csrftoken"]})
        client.headers["X-CSRFToken"] = client.cookies["csrftoken"]
        return client

    def _work(self, client: httpx.Client, stop: threading.Event) -> None:
        while not stop.is_set():
            answer = client.get("/api/v1/reviews", params=QUEUE)
            answer.raise_for_status()
            for review in answer.json()["results"]:
                self._decide(client, review)
            stop.wait(POLL_SECONDS)

    def _decide(self, client: httpx.Client, review: dict[str, Any]) -> None:
        """Decide one review. The decision may be refused, as a person's may: somebody else was faster, or this person
        may not decide it."""
        # A vote must name the digest of what was seen. Only the single review has it, not the list.
        card = client.get(f"/api/v1/reviews/{review['id']}")
        card.raise_for_status()
        dice = Random(f"{self.seed}/{review['id']}")  # noqa: S311 - a simulation
        word = "override" if dice.random() < 0.25 else "confirm"
        said = {"action_digest": card.json()["action_digest"]}
        answer = client.post(f"/api/v1/reviews/{review['id']}/{word}", json=said)
        if answer.is_success:
            self.decided += 1
        else:
            log.info("decision_refused", review_id=review["id"], status=answer.status_code)
