"""The operator console in a real browser: search, overview, runs, publishing, the kill switch by two people."""

import json
import time
from typing import Any
from uuid import uuid4

import pytest
from playwright.sync_api import Page, expect

from tests.browser.site import PHONE, People, Site, axe
from workflows.definitions.rules.starters.starters import definition_starter

RUNS = "/admin/workflows/workflowinstance/"


def choose(page: Page, label: str, value: str) -> None:
    page.get_by_label(label).select_option(value)


def begin(site: Site, template: str, **ids: str) -> dict[str, Any]:
    """A case of the template's product; its run."""
    definition = site.call(
        "GET", f"/workflow-definitions/{site.demo['definitions'][template]['id']}", "workflows"
    ).json()
    fresh = {name: str(uuid4()) for name in ("event_id", "correlation_id", "case_id")} | ids
    envelope = site.demo["event_example"] | fresh | {"product_id": definition["product_id"]}
    assert site.call("POST", "/events", "workflows", envelope).status_code == 202
    (run,) = site.call("GET", f"/workflow-instances?case_id={fresh['case_id']}", "workflows").json()["results"]
    return fresh | {"id": run["id"]}


def until(site: Site, run: dict[str, Any], status: str) -> None:
    deadline = time.monotonic() + 20
    while (found := site.call("GET", f"/workflow-instances/{run['id']}", "workflows").json())["status"] != status:
        assert time.monotonic() < deadline, found["status"]
        time.sleep(0.1)


def test_any_id_leads_to_its_page(site: Site, people: People) -> None:
    page = people.page("operator")
    attempt = site.ask("hold", action={"target_ref": f"case-{uuid4().hex[:8]}"})
    trace = site.call("GET", f"/attempts/{attempt['id']}", "caller").json()["request_trace_id"]
    run = begin(site, "clinician_only")
    page.goto("/admin/")

    def find(term: str) -> None:
        box = page.get_by_role("search").get_by_placeholder("Any id, key, trace or slug").first
        box.fill(term)
        box.press("Enter")
        page.wait_for_load_state()

    wanted = {
        attempt["id"]: f"/attempts/attempt/{attempt['id']}/",
        trace: f"/attempts/attempt/{attempt['id']}/",
        attempt["review"]["id"]: f"/attempts/review/{attempt['review']['id']}/",
        run["case_id"]: f"{RUNS}{run['id']}/",
        run["correlation_id"]: f"{RUNS}{run['id']}/",
        run["event_id"]: "/workflows/workflowevent/",
        "demo-once-http": "/governance/contract/",
    }
    for term, place in wanted.items():
        find(term)
        assert place in page.url, (term, page.url)
    find(str(uuid4()))
    expect(page.get_by_text("Nothing that you can see matches exactly")).to_be_visible()


def test_the_overview_is_live_on_a_desk_and_on_a_phone(site: Site, people: People) -> None:
    page = people.page("operator")
    page.clock.install()
    page.goto("/admin/")
    expect(page.get_by_role("heading", name="Holds by age")).to_be_visible()
    before = page.locator("#card-holds ~ p a").first.inner_text() if page.locator("#card-holds ~ p a").count() else "0"
    site.ask("hold", action={"target_ref": f"case-{uuid4().hex[:8]}"})
    page.clock.fast_forward(11_000)
    expect(page.locator("[data-fresh]")).to_contain_text("Live. Last update")
    expect(page.locator("#card-holds ~ p a").first).not_to_have_text(before)
    page.get_by_text("As a table").click()
    expect(page.get_by_role("columnheader", name="held")).to_be_visible()
    small = people.page("operator", viewport=PHONE, color_scheme="dark")
    small.goto("/admin/")
    expect(small.locator("svg.hp-chart")).to_be_visible()
    assert small.evaluate("document.documentElement.scrollWidth <= window.innerWidth")


def test_halt_resume_and_retry_from_the_page_of_a_run(site: Site, people: People) -> None:
    run = begin(site, "clinician_only")
    until(site, run, "waiting_approval")
    page = people.page("operator")
    page.goto(f"{RUNS}{run['id']}/change/")
    expect(page.locator("svg.wf-graph.wf-live")).to_be_visible()
    for button, said, after in (
        ("Halt", "Halted. Later", "halted"),
        ("Resume", "Resumed.", "waiting approval"),
        ("Halt", "Halted. Later", "halted"),
        ("Retry the step", "The step was started again.", "waiting approval"),
    ):
        page.get_by_role("link", name=button, exact=True).click()
        page.get_by_role("button", name=button, exact=True).click()
        expect(page.locator(".hp-error").first).to_be_visible()  # no reason, nothing done
        choose(page, "Reason", "planned_maintenance")
        page.get_by_role("button", name=button, exact=True).click()
        expect(page.get_by_text(said)).to_be_visible()
        expect(page.get_by_text(after, exact=True).first).to_be_visible()
    expect(page.locator(".wf-timeline")).to_contain_text("Started the step again")


def test_a_failing_definition_is_not_published_and_a_fixed_one_is(site: Site, people: People) -> None:
    page, slug = people.page("operator"), f"browser-{uuid4().hex[:6]}"
    document = definition_starter("clinician_only")
    broken = json.loads(json.dumps(document).replace('"TERMINAL"', '"nowhere"'))
    page.goto("/admin/workflows/workflowdefinition/add/")
    page.get_by_label("Product").select_option(label="Dermatology")
    page.get_by_label("Slug").fill(slug)
    page.get_by_label("Definition (JSON)").fill(json.dumps(broken))
    expect(page.get_by_text("'nowhere' is neither")).to_be_visible()
    page.get_by_role("button", name="Save draft").click()
    page.get_by_role("link", name="Publish", exact=True).click()
    expect(page.get_by_role("alert")).to_contain_text("You cannot publish it")
    expect(page.get_by_role("button", name="Publish")).to_have_count(0)
    page.get_by_role("link", name="Back", exact=True).click()
    page.get_by_role("link", name="Edit", exact=True).click()
    page.get_by_label("Definition (JSON)").fill(json.dumps(document))
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_text("No errors found")).to_be_visible()
    page.get_by_role("link", name="Publish", exact=True).click()
    draft = page.url.rstrip("/").split("/")[-3]
    page.get_by_role("button", name="Publish").click()
    expect(page.get_by_text("a second person has to confirm it")).to_be_visible()
    proposal = page.url
    second = people.page("operator2")
    second.goto(proposal)
    second.get_by_role("link", name="Confirm", exact=True).click()
    second.get_by_role("button", name="Confirm", exact=True).click()
    expect(second.get_by_text("Confirmed. It is in force now.")).to_be_visible()
    page.goto(f"/admin/workflows/workflowdefinition/{draft}/change/")
    expect(page.locator(".hp-badge", has_text="active").first).to_be_visible()


def test_a_shutdown_is_red_everywhere_and_a_second_person_releases_it(site: Site, people: People) -> None:
    page = people.page("operator")
    page.goto("/admin/governance/shutdown/add/")
    choose(page, "What to stop", "contract")
    page.get_by_label("Contract").fill("demo-deny")
    page.get_by_role("button", name="Show what it stops").click()
    expect(page.get_by_text("demo-deny/1")).to_be_visible()
    choose(page, "Reason", "planned_maintenance")
    page.get_by_role("button", name="Engage", exact=False).click()
    expect(page.get_by_text("Engaged from the next request on.")).to_be_visible()
    assert site.ask("deny")["reason_code"] == "shutdown_engaged"
    for path in ("/admin/", "/admin/attempts/attempt/", "/admin/start/"):
        page.goto(path)
        expect(page.get_by_label("Engaged shutdowns").first).to_contain_text("demo-deny")
    page.get_by_label("Engaged shutdowns").get_by_role("link", name="demo-deny").first.click()
    page.get_by_role("link", name="Release", exact=False).click()
    expect(page.get_by_text("A second person has to release it.")).to_be_visible()
    page.get_by_role("button", name="Release", exact=False).click()
    expect(page.get_by_role("alert").first).to_be_visible()
    people.allow("status of 403")
    second = people.page("operator2")
    second.goto(page.url)
    second.get_by_role("button", name="Release", exact=False).click()
    expect(second.get_by_text("Released. Attempts are accepted again")).to_be_visible()
    assert site.ask("deny")["reason_code"] == "policy_denied"
    expect(second.locator(".hp-banner")).to_have_count(0)


def test_a_kept_filter_and_an_export(people: People) -> None:
    page, name = people.page("operator"), f"Held {uuid4().hex[:4]}"
    page.goto("/admin/attempts/attempt/?state=review-required")
    page.get_by_text("Save this filter").click()
    page.get_by_label("Name").fill(name)
    page.get_by_role("button", name="Save", exact=True).click()
    page.get_by_role("link", name=name).click()
    assert "state=review-required" in page.url
    with page.expect_download() as download:
        page.get_by_role("link", name="Export CSV").click()
    assert download.value.path().read_text().splitlines()[0].startswith("\ufeffid,State")
    page.get_by_role("button", name=f"Delete the filter {name}").click()
    expect(page.get_by_role("link", name=name)).to_have_count(0)


@pytest.mark.parametrize(
    "path", ["/admin/", "/admin/start/", "/admin/search/?q=demo-hold-none", "/admin/schedule/", "/"]
)
def test_the_pages_pass_axe_in_what_is_ours(people: People, path: str) -> None:
    for scheme in ("light", "dark"):
        page = people.page("operator", color_scheme=scheme)
        page.goto(path)
        ours = [one for one in axe(page) if ".hp" in one or "hp-" in one or path == "/"]
        assert not ours, "\n".join(ours)


def test_the_text_of_a_large_picture_stays_in_its_boxes(people: People) -> None:
    page = people.page("operator")
    page.goto("/admin/workflows/workflowdefinition/templates/")
    widest = page.evaluate(
        """() => [...document.querySelectorAll(".wf-node")].map((node) => {
          const shape = node.querySelector(".wf-shape").getBBox().width;
          return Math.max(...[...node.querySelectorAll("text")].map((text) => text.getComputedTextLength() - shape));
        })"""
    )
    assert len(widest) > 40
    assert max(widest) < -8
