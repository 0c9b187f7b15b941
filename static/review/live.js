// Keeps the list and the open card fresh: asks with the entity tag it has, and changes nothing on a 304.
import { banner, bannerEnds } from "./banner.js";
import { closeCard, openCard } from "./guard.js";

const EVERY = 4000;
const LONGEST = 15_000; // after that a request counts as lost
const OLDEST = 25_000; // a card that was not compared for so long is not answered
const tags = new Map();
let fresh = Date.now();

class SessionOver extends Error {}

async function fetchPart(url) {
  const headers = { "HX-Request": "true" };
  if (tags.has(url)) headers["If-None-Match"] = tags.get(url);
  const signal = AbortSignal.timeout(LONGEST);
  const answer = await fetch(url, { headers, cache: "no-store", credentials: "same-origin", signal });
  if (answer.headers.get("HX-Redirect")) throw new SessionOver(answer.headers.get("HX-Redirect"));
  if (answer.status >= 500 || answer.status === 429) throw new Error(`status ${answer.status}`);
  if (answer.status !== 200) return null;
  tags.set(url, answer.headers.get("ETag"));
  return new DOMParser().parseFromString(await answer.text(), "text/html").body;
}

function keepFocus(place, change) {
  const row = place.contains(document.activeElement) && document.activeElement.closest("[data-id]");
  const inPick = row && document.activeElement.classList.contains("pick");
  const id = row && row.dataset.id;
  change();
  if (!id) return;
  const again = place.querySelector(`[data-id="${id}"] ${inPick ? ".pick" : "a"}`);
  if (again) again.focus({ preventScroll: true });
}

async function freshList() {
  const list = document.getElementById("queue-list");
  if (!list) return;
  const part = await fetchPart(list.dataset.live);
  if (!part) return;
  const picked = new Set([...list.querySelectorAll(".pick:checked")].map((box) => box.value));
  keepFocus(list, () => list.replaceChildren(...part.childNodes));
  list.querySelectorAll(".pick").forEach((box) => (box.checked = picked.has(box.value)));
  window.htmx.process(list);
  document.dispatchEvent(new CustomEvent("review-live"));
}

async function freshCard() {
  const sheet = document.querySelector("#card [data-review]");
  if (!sheet) return;
  const part = await fetchPart(sheet.dataset.live);
  if (!part || !sheet.isConnected) return;
  const standing = sheet.querySelector("#standing");
  const answers = sheet.querySelector("#answers");
  const newStanding = part.querySelector("#standing");
  const newAnswers = part.querySelector("#answers");
  if (!newStanding || !newAnswers) return;
  const ended = newStanding.querySelector("[data-open=no]");
  if (ended && !sheet.classList.contains("ended")) {
    sheet.classList.add("ended");
    say(newStanding.querySelector(".outcome").textContent);
  }
  standing.replaceChildren(...newStanding.childNodes);
  if (answers.dataset.key !== newAnswers.dataset.key) {
    const hadFocus = answers.contains(document.activeElement);
    answers.dataset.key = newAnswers.dataset.key;
    answers.replaceChildren(...newAnswers.childNodes);
    window.htmx.process(answers);
    if (hadFocus) sheet.querySelector("h1").focus();
  }
  document.dispatchEvent(new CustomEvent("review-live"));
}

export function say(text) {
  const place = document.getElementById("announce");
  if (place) place.textContent = text.trim();
}

// The page is no older than its last answer, and says so when it is not.
function connected() {
  fresh = Date.now();
  openCard("offline", "stale");
  bannerEnds("offline");
  bannerEnds("stale");
}

function away() {
  closeCard("offline");
  banner("offline", (since) => `No connection to Holdpoint since ${since}. Nothing that you do here is recorded until it is back.`);
}

function sessionOver(address) {
  closeCard("session");
  banner("session", (since) => `Your session is over since ${since}. Nothing that you do here is recorded.`, {
    label: "Sign in again",
    act: () => window.location.assign(address),
  });
}

function checkAge() {
  if (document.hidden || Date.now() - fresh < OLDEST) return;
  closeCard("stale");
  banner("stale", "This page was not renewed for a while and may be out of date. It is being read again.");
}

let running = false;
let again = false;

async function freshen() {
  if (running) {
    again = true;
    return;
  }
  running = true;
  try {
    await Promise.all([freshList(), freshCard()]);
    connected();
  } catch (error) {
    if (error instanceof SessionOver) sessionOver(error.message);
    else away();
  } finally {
    running = false;
    if (again) {
      again = false;
      freshen();
    }
  }
}

export function startLive() {
  if (!document.querySelector("[data-live]")) return;
  setInterval(checkAge, 1000);
  window.addEventListener("offline", away);
  window.addEventListener("online", freshen);
  setInterval(() => {
    if (!document.hidden) freshen();
  }, EVERY);
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) return;
    checkAge();
    freshen();
  });
  document.addEventListener("review-changed", freshen);
}
