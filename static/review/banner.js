// What a person must not overlook: no connection, a session that is over, an answer without a reply. One banner; the
// most serious message is shown. And short words for a key that did nothing.
import { say } from "./live.js";

const ORDER = ["session", "offline", "lost", "stale", "loading"];
const shown = new Map();
let toastTimer = 0;

const clock = () => new Date().toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", second: "2-digit" });

function paint() {
  const place = document.getElementById("banner");
  if (!place) return;
  const kind = ORDER.find((one) => shown.has(one));
  place.hidden = !kind;
  if (!kind) return;
  const { text, label, act } = shown.get(kind);
  place.dataset.kind = kind;
  const words = place.querySelector("p");
  if (words.textContent !== text) words.textContent = text;
  const button = place.querySelector("button");
  button.hidden = !label;
  button.textContent = label || "";
  button.onclick = act || null;
}

// `text` may be a function of the time since when it is so.
export function banner(kind, text, { label = "", act = null } = {}) {
  const since = shown.get(kind)?.since || clock();
  shown.set(kind, { since, label, act, text: typeof text === "function" ? text(since) : text });
  paint();
}

export function bannerEnds(kind) {
  if (shown.delete(kind)) paint();
}

// Nothing happened, and why: seen and heard, and gone by itself.
export function told(text) {
  const place = document.getElementById("told");
  say(text);
  if (!place) return;
  place.textContent = text;
  place.hidden = false;
  clearTimeout(toastTimer);
  toastTimer = setTimeout(() => (place.hidden = true), 4000);
}
