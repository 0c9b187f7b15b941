// Follows an order that is worked off in the background: numbers every two seconds, the whole page when it has finished.
const EVERY = 2000;
const section = document.querySelector("[data-progress]");

function show(found) {
  const ended = found.done + found.refused;
  const bar = section.querySelector("[data-bar]");
  bar.max = found.total;
  bar.value = ended;
  for (const name of ["total", "done", "refused", "waiting"]) {
    section.querySelector(`dd[data-${name}]`).textContent = found[name].toLocaleString("en");
  }
}

async function follow() {
  try {
    const answer = await fetch(section.dataset.progress, { headers: { Accept: "application/json" } });
    if (!answer.ok) throw new Error(String(answer.status));
    const found = await answer.json();
    show(found);
    if (found.finished) {
      location.reload();
      return;
    }
  } catch {
    section.querySelector("[data-said]").textContent = "Could not read the progress. Trying again.";
  }
  setTimeout(follow, EVERY);
}

if (section) setTimeout(follow, EVERY);
