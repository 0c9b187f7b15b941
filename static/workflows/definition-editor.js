// While somebody types, ask the server what is wrong and draw the picture. Without this script saving says the same.
import { element } from "../holdpoint/problems.js";
import { placeOf } from "./json-place.js";

const PAUSE = 400;

function show(field, pointer) {
  const place = placeOf(field.value, pointer);
  field.focus();
  if (!place) return;
  field.setSelectionRange(place.start, place.end);
  const line = field.value.slice(0, place.start).split("\n").length - 1;
  const height = parseFloat(getComputedStyle(field).lineHeight) || 18;
  field.scrollTop = Math.max(0, (line - 4) * height);
}

function findingItem(field, finding) {
  const item = element("li");
  const link = element("button", finding.pointer || "/");
  link.type = "button";
  link.addEventListener("click", () => show(field, finding.pointer));
  item.append(link, " ", element("span", finding.rule, "hp-muted"));
  item.append(element("pre", finding.message, finding.message.includes("\n") ? "hp-caret" : ""));
  return item;
}

function list(field, panel, findings) {
  const words = findings.length === 1 ? "1 finding" : `${findings.length} findings`;
  const text = findings.length ? `${words}: you can save it, but not publish it.` : "No findings: you can publish it.";
  const items = element("ul", undefined, "hp-problems wf-findings");
  items.append(...findings.map((finding) => findingItem(field, finding)));
  panel.replaceChildren(element("p", text, `hp-alert ${findings.length ? "hp-warn" : "hp-good"}`));
  if (findings.length) panel.append(items);
  panel.hidden = false;
}

function draw(frame, markup) {
  if (!markup) return; // not JSON just now: the last picture stays
  const made = new DOMParser().parseFromString(markup, "image/svg+xml").documentElement;
  frame.replaceChildren(document.importNode(made, true));
  frame.hidden = false;
}

function watch(field) {
  const form = field.form;
  const panel = form.querySelector("[data-findings]");
  const frame = form.querySelector("[data-picture]");
  let timer;
  let asking;

  async function ask() {
    asking?.abort();
    asking = new AbortController();
    try {
      const answer = await fetch(field.dataset.validate, { method: "POST", body: new FormData(form), signal: asking.signal });
      if (!answer.ok) throw new Error(String(answer.status));
      const { findings, picture } = await answer.json();
      list(field, panel, findings);
      draw(frame, picture);
    } catch (error) {
      if (error.name === "AbortError") return;
      panel.replaceChildren(element("p", "Could not check the text. It is checked again when you save.", "hp-muted"));
      panel.hidden = false;
    }
  }

  const later = () => { clearTimeout(timer); timer = setTimeout(ask, PAUSE); };
  field.addEventListener("input", later);
  form.querySelector("[name=organization]")?.addEventListener("change", later);
  const lookAtHash = () => { if (location.hash.length > 1) show(field, decodeURIComponent(location.hash.slice(1))); };
  window.addEventListener("hashchange", lookAtHash);
  lookAtHash();
  ask();
}

document.querySelectorAll("[data-validate]").forEach(watch);
