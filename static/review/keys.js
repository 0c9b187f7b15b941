// Single keys, unless the person writes or has turned them off. Nothing is decided by one key: `a` goes to the button.
import { told } from "./banner.js";
import { dropped } from "./guard.js";
import { takeBack } from "./holdback.js";
import { say } from "./live.js";

const STORE = "holdpoint.review.keys";

const on = () => localStorage.getItem(STORE) !== "off";
const writes = (element) => element.matches("input:not([type=checkbox]), textarea, select, [contenteditable]");

function rows() {
  return [...document.querySelectorAll(".rows .row")];
}

function move(step) {
  const all = rows();
  if (!all.length) return;
  const at = all.findIndex((row) => row.classList.contains("open"));
  const next = all[Math.min(Math.max(at + step, 0), all.length - 1)] || all[0];
  next.querySelector("a").click();
}

function toAnswer(key) {
  if (dropped()) return;
  const place = document.querySelector(`#answers [data-key="${key}"]`);
  if (!place) return told("This answer is not available here.");
  if (place.matches("details")) {
    place.open = true;
    place.querySelector("[data-first]").focus();
  } else {
    place.focus();
    say(`${place.textContent.trim()}: press Enter.`);
  }
}

function pick() {
  const row = document.querySelector(".row.open") || document.activeElement.closest(".row");
  const box = row && row.querySelector(".pick");
  if (box && !box.disabled) box.click();
  else told("You can choose only low-risk actions.");
}

function help() {
  const dialog = document.getElementById("help");
  document.getElementById("keys-on").checked = on();
  if (dialog.open) dialog.close();
  else dialog.showModal();
}

function escape() {
  const choice = document.activeElement.closest("details.choice");
  if (choice) {
    choice.open = false;
    choice.querySelector("summary").focus();
  } else if (writes(document.activeElement)) {
    document.activeElement.blur();
  } else {
    const row = document.querySelector(".row.open a") || document.querySelector(".row a");
    if (row) row.focus();
  }
}

const actions = {
  j: () => move(1),
  k: () => move(-1),
  a: () => toAnswer("a"),
  r: () => toAnswer("r"),
  x: pick,
  u: takeBack,
  "/": () => document.getElementById("q")?.select(),
  "?": help,
};

export function startKeys() {
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
    if (document.querySelector("dialog[open]")) return;
    if (event.key === "Escape") return escape();
    const action = actions[event.key];
    if (!action || !on() || writes(event.target)) return;
    event.preventDefault();
    action();
  });
  document.addEventListener("click", (event) => event.target.closest("[data-help]") && help());
  document.getElementById("keys-on")?.addEventListener("change", (event) => {
    localStorage.setItem(STORE, event.target.checked ? "on" : "off");
  });
}
