// While somebody types JSON, ask the server what is wrong with it. Without this script the same answer comes on submit.
import { element, problemList } from "./problems.js";

const PAUSE = 400;

function show(panel, problems) {
  const words = problems.length === 1 ? "1 problem" : `${problems.length} problems`;
  const tone = problems.length ? "hp-warn" : "hp-good";
  const summary = element("p", problems.length ? words : "No problems found.", `hp-alert ${tone}`);
  panel.replaceChildren(summary, ...(problems.length ? [problemList(problems)] : []));
  panel.hidden = false;
}

function watch(field) {
  const form = field.form;
  const panel = form.querySelector("[data-live]");
  let timer;
  let asking;

  async function ask() {
    asking?.abort();
    asking = new AbortController();
    try {
      const answer = await fetch(field.dataset.validate, { method: "POST", body: new FormData(form), signal: asking.signal });
      if (!answer.ok) throw new Error(String(answer.status));
      show(panel, (await answer.json()).problems);
    } catch (error) {
      if (error.name === "AbortError") return;
      panel.replaceChildren(element("p", "Could not check the text. It is checked again when you save.", "hp-muted"));
      panel.hidden = false;
    }
  }

  const later = () => { clearTimeout(timer); timer = setTimeout(ask, PAUSE); };
  field.addEventListener("input", later);
  form.querySelector("[name=organization]")?.addEventListener("change", later);
  ask();
}

document.querySelectorAll("[data-validate]").forEach(watch);
