// The card answers only for the item that is fully on the screen. From the moment another item is chosen, and while
// nothing is certain (no connection, a reply that is missing), it is inert: no key and no press reaches it.
import { banner, bannerEnds, told } from "./banner.js";

const card = () => document.getElementById("card");
const reasons = new Set();
let slow = 0;
let current = null; // the request whose answer may replace the card

export const DROPPED = {
  loading: "The next item is still loading. Nothing was done.",
  sending: "Your answer is still being sent. Nothing else was done.",
  offline: "There is no connection. Nothing was done.",
  session: "Your session is over. Nothing was done.",
  lost: "This item has to be read again first. Nothing was done.",
  stale: "This item may have changed and is being read again. Nothing was done.",
};

export const closedBecause = () => [...reasons].find((one) => one in DROPPED) || "";

export function closeCard(reason) {
  reasons.add(reason);
  paint();
}

export function openCard(...gone) {
  gone.forEach((reason) => reasons.delete(reason));
  paint();
}

function paint() {
  const place = card();
  if (!place) return;
  place.inert = reasons.size > 0;
  place.setAttribute("aria-busy", String(reasons.has("loading") || reasons.has("sending")));
}

// True if the card is closed: then the key or press did nothing, and the person was told why.
export function dropped() {
  const why = closedBecause();
  if (why) told(DROPPED[why]);
  return Boolean(why);
}

const isVote = (detail) => detail.requestConfig.verb !== "get";

function label(element) {
  const row = element.closest && element.closest(".row");
  return row ? row.querySelector(".what").textContent.trim() : "the item";
}

function before(event) {
  const { detail } = event;
  if (detail.target !== card()) return;
  if (reasons.has("sending") || reasons.has("session") || (isVote(detail) && closedBecause())) {
    event.preventDefault();
    dropped();
    return;
  }
  current = { xhr: detail.xhr, what: label(detail.elt), vote: isVote(detail), again: detail.elt, id: shownId() };
  if (current.vote) {
    closeCard("sending");
  } else {
    openCard("lost");
    bannerEnds("lost");
    closeCard("loading");
    // On a fast line the card is there before anybody could read this.
    const { what } = current;
    clearTimeout(slow);
    slow = setTimeout(() => banner("loading", `Loading ${what} …`), 400);
  }
}

const shownId = () => card().querySelector("[data-review]")?.dataset.review || "";

// A reply that is not the one that was asked for last would show another item than the one that was chosen. (It is
// not aborted: htmx prints that as an error.)
function beforeSwap(event) {
  if (event.detail.target === card() && current && event.detail.xhr !== current.xhr) event.detail.shouldSwap = false;
}

// The item that was chosen is on the screen. Before the others hear of it: an inert card takes no focus.
function arrived(event) {
  if (event.detail.target === card() && current && event.detail.xhr === current.xhr) openCard("sending", "loading");
}

function after(event) {
  if (!current || event.detail.xhr !== current.xhr) return;
  const done = current;
  current = null;
  openCard("sending", "loading");
  clearTimeout(slow);
  bannerEnds("loading");
  if (!event.detail.successful) fail(done);
}

function fail(done) {
  closeCard("lost");
  const url = `/review/${done.id}${window.location.search}`;
  const read = () => window.htmx.ajax("GET", url, { target: "#card", swap: "innerHTML" });
  if (done.vote) {
    const text = "No reply came to your answer: it may be on record, or not. Read the item again before you go on.";
    banner("lost", text, { label: "Read it again", act: read });
  } else {
    const again = done.again.isConnected ? () => done.again.click() : read;
    const text = `${done.what} could not be loaded, and what is shown below is not it. Nothing was decided.`;
    banner("lost", text, { label: "Try again", act: again });
  }
}

// The last wall: whatever sends a form of the card, it must be the card's own item.
function confirm(event) {
  const form = event.target.closest && event.target.closest("#card form");
  if (form && dropped()) event.preventDefault();
}

export function startGuard() {
  if (!card()) return;
  document.addEventListener("htmx:confirm", confirm);
  document.addEventListener("htmx:beforeRequest", before);
  document.addEventListener("htmx:beforeSwap", beforeSwap);
  document.addEventListener("htmx:afterSwap", arrived);
  document.addEventListener("htmx:afterRequest", after);
  // Enter on nothing: the button that the person aims at is gone or not there yet.
  document.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && document.activeElement === document.body && closedBecause()) dropped();
  });
}
