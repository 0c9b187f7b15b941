// Reads the simulation's answer line by line (NDJSON) and shows progress. Without it the form is posted as it is.
import { element, problemList } from "./problems.js";

const form = document.querySelector("[data-simulate]");
const result = document.querySelector("[data-result]");
const start = form.querySelector("[data-start]");
const stop = form.querySelector("[data-stop]");

async function* lines(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) break;
    const parts = (rest + value).split("\n");
    rest = parts.pop();
    for (const part of parts) yield JSON.parse(part);
  }
}

function counts(heading, values) {
  const box = element("div");
  const table = element("table", undefined, "hp-table");
  for (const [name, count] of Object.entries(values)) {
    const row = table.insertRow();
    const head = element("th", name);
    head.scope = "row";
    row.append(head, element("td", count.toLocaleString("en"), "hp-number"));
  }
  box.append(element("h3", heading), table);
  return box;
}

function page(most) {
  const bar = element("progress");
  bar.max = most;
  bar.value = 0;
  bar.setAttribute("aria-label", "Decisions simulated");
  const said = element("p", "Starting…", "hp-result");
  said.setAttribute("role", "status");
  const tables = element("div", undefined, "hp-columns");
  const heading = element("h3", "Changes");
  const list = element("table", undefined, "hp-table hp-wide");
  const head = list.createTHead().insertRow();
  for (const title of ["Decision", "Before", "After", "Reason"]) {
    const cell = element("th", title);
    cell.scope = "col";
    head.append(cell);
  }
  const rows = list.createTBody();
  const scroll = element("div", undefined, "hp-scroll");
  scroll.append(list);
  heading.hidden = scroll.hidden = true;
  result.replaceChildren(bar, said, tables, heading, scroll);
  return { bar, said, tables, heading, scroll, rows };
}

const named = (verdict, rule) => (rule ? `${verdict} (${rule})` : verdict);

function addChange(view, change) {
  view.heading.hidden = view.scroll.hidden = false;
  const row = view.rows.insertRow();
  const link = element("a", change.decision_id);
  link.href = form.dataset.decision.replace("00000000-0000-0000-0000-000000000000", change.decision_id);
  row.insertCell().append(link);
  row.insertCell().textContent = named(change.before, change.rule_before);
  row.insertCell().textContent = named(change.after, change.rule_after);
  row.insertCell().textContent = change.reason_code || "–";
}

function showTally(view, tally, final) {
  view.bar.value = final ? view.bar.max : tally.decided;
  const words = `${tally.decided.toLocaleString("en")} decided again, ${tally.changed.toLocaleString("en")} would change.`;
  const broken = tally.unreadable ? ` ${tally.unreadable} could not be read: their snapshots are missing or altered.` : "";
  view.said.textContent = final && !tally.decided ? "There is no recorded decision under this policy yet." : words + broken;
  if (tally.changed) view.tables.replaceChildren(counts("By move", tally.by_move), counts("By rule", tally.by_rule));
  if (tally.changed > Number(form.dataset.listed)) view.heading.textContent = `Changes (the first ${form.dataset.listed})`;
}

function refuse(detail, problems) {
  const said = element("p", detail, "hp-alert hp-bad");
  said.setAttribute("role", "alert");
  result.replaceChildren(said, problemList(problems));
}

async function run(signal) {
  const view = page(Number(new FormData(form).get("last")));
  const answer = await fetch(form.dataset.stream, { method: "POST", body: new FormData(form), signal });
  if (!answer.ok) {
    const said = await answer.json().catch(() => ({ detail: "The simulation could not be started. Try again.", problems: [] }));
    refuse(said.detail, said.problems ?? []);
    return;
  }
  let complete = false;
  for await (const line of lines(answer.body)) {
    if (line.type === "change") addChange(view, line);
    else showTally(view, line, (complete = line.type === "summary"));
  }
  if (!complete) view.said.textContent += " The connection broke before the simulation was complete. Start it again.";
}

form.addEventListener("submit", async (event) => {
  event.preventDefault();
  const control = new AbortController();
  const abort = () => control.abort();
  start.disabled = true;
  stop.hidden = false;
  stop.addEventListener("click", abort);
  try {
    await run(control.signal);
  } catch (error) {
    if (error.name !== "AbortError") refuse("The simulation was interrupted. Nothing was changed. Start it again.", []);
    else result.append(element("p", "Stopped.", "hp-muted"));
  } finally {
    start.disabled = false;
    stop.hidden = true;
    stop.removeEventListener("click", abort);
  }
});
