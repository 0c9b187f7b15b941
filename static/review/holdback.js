// An answer counts a few seconds after it was given; until then `u` takes it back, and nothing has left this page. The
// setting is the desk's `data-hold-back`. An answer that needs a proof is sent at once: its prompt is the pause.
import { banner, told } from "./banner.js";

const waiting = new Map(); // review id: the answer
const UNSENT = "holdpoint.review.unsent";

const seconds = () => Number(document.querySelector(".desk")?.dataset.holdBack || 0);
export const isWaiting = (id) => waiting.has(id);
export const latest = () => [...waiting.values()].at(-1);

function confirm(event) {
  const form = event.target.closest && event.target.closest("form[data-decides]");
  if (!form || !seconds() || form.dataset.proves === "yes" || event.defaultPrevented) return;
  if (event.detail.verb !== "post") return;
  event.preventDefault();
  hold(form);
}

function hold(form) {
  const sheet = form.closest("[data-review]");
  const id = sheet.dataset.review;
  if (waiting.has(id)) return told("Your answer to this item waits already. Press u to take it back.");
  const data = new FormData(form);
  data.set("stay", "1");
  const what = sheet.querySelector(".target strong").textContent.trim();
  const answer = { id, url: form.getAttribute("action"), data, what, verb: form.dataset.decides, due: Date.now() + seconds() * 1000 };
  waiting.set(id, answer);
  answer.timer = setTimeout(() => send(answer), seconds() * 1000);
  sheet.classList.add("answered");
  paint();
  following(id);
}

// The next item opens by itself, as after any answer.
function following(id) {
  const rows = [...document.querySelectorAll(".rows .row")];
  const at = rows.findIndex((row) => row.dataset.id === id);
  const next = [...rows.slice(at + 1), ...rows.slice(0, Math.max(at, 0))].find((row) => !waiting.has(row.dataset.id));
  if (next) next.querySelector("a").click();
  else document.getElementById("take-back").focus();
}

export function takeBack() {
  const answer = latest();
  if (!answer) return told("There is no answer to take back: what you answered before is on record.");
  clearTimeout(answer.timer);
  waiting.delete(answer.id);
  paint();
  told(`Taken back: ${answer.what}. Nothing was decided.`);
  const row = document.querySelector(`.row[data-id="${answer.id}"] a`);
  if (row) row.click();
}

function lost(answer, text) {
  const open = () => window.location.assign(`/review/${answer.id}`);
  banner("lost", `${answer.what}: ${text}`, { label: "Open the item", act: open });
}

async function send(answer) {
  answer.sent = true;
  paint();
  try {
    const stop = AbortSignal.timeout(20_000);
    const reply = await fetch(answer.url, {
      method: "POST", body: answer.data, headers: { "HX-Request": "true" }, credentials: "same-origin", signal: stop,
    });
    const page = new DOMParser().parseFromString(await reply.text(), "text/html");
    const refusal = page.querySelector(".refusal");
    const notice = page.querySelector(".notice");
    if (reply.headers.get("HX-Redirect")) lost(answer, "your session is over, so your answer was not recorded.");
    else if (refusal) lost(answer, `not recorded. ${refusal.innerText || refusal.textContent}`.replace(/\s+/g, " "));
    else if (notice) told(notice.textContent.trim());
    else if (reply.ok) lost(answer, "not recorded: you have to confirm who you are first, on the item itself.");
    else lost(answer, `the server answered with status ${reply.status}, so look whether your answer is on record.`);
  } catch {
    lost(answer, "no reply came to your answer: it may be on record, or not.");
  } finally {
    waiting.delete(answer.id);
    paint();
    document.dispatchEvent(new CustomEvent("review-changed"));
  }
}

function paint() {
  const bar = document.getElementById("held-back");
  const answer = latest();
  bar.hidden = !answer;
  document.querySelectorAll(".rows .row").forEach((row) => row.classList.toggle("answered", waiting.has(row.dataset.id)));
  if (!answer) return;
  const left = Math.max(0, Math.ceil((answer.due - Date.now()) / 1000));
  const others = waiting.size > 1 ? ` (${waiting.size} answers wait)` : "";
  const words = `${answer.verb}: ${answer.what}. ${answer.sent ? "It is being sent" : `It counts in ${left} s`}${others}.`;
  bar.querySelector("[data-words]").textContent = words;
  bar.querySelector("button").disabled = Boolean(answer.sent);
}

// An answer that was never sent is said so, here or when the pages are opened again.
function leaving(event) {
  if ([...waiting.values()].some((one) => !one.sent)) event.preventDefault();
}

function left() {
  const unsent = [...waiting.values()].filter((one) => !one.sent).map((one) => one.what);
  if (unsent.length) sessionStorage.setItem(UNSENT, unsent.join(", "));
}

export function startHoldBack() {
  const bar = document.getElementById("held-back");
  if (!bar) return;
  document.addEventListener("htmx:confirm", confirm);
  bar.querySelector("button").addEventListener("click", takeBack);
  document.addEventListener("review-live", paint);
  setInterval(() => waiting.size && paint(), 250);
  window.addEventListener("beforeunload", leaving);
  window.addEventListener("pagehide", left);
  const unsent = sessionStorage.getItem(UNSENT);
  sessionStorage.removeItem(UNSENT);
  if (unsent) banner("lost", `Not recorded, because the page was left before your answer counted: ${unsent}.`);
}
