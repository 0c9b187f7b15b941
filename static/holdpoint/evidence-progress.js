// Follows a bundle while it is built: what it waits for every two seconds, the whole page when it has ended.
const EVERY = 2000;
const section = document.querySelector("[data-progress]");

async function follow() {
  try {
    const answer = await fetch(section.dataset.progress, { headers: { Accept: "application/json" } });
    if (!answer.ok) throw new Error(String(answer.status));
    const found = await answer.json();
    if (found.state === "ready" || found.state === "failed") {
      location.reload();
      return;
    }
    section.querySelector("[data-said]").textContent = found.progress;
  } catch {
    section.querySelector("[data-said]").textContent = "could not read the progress, trying again";
  }
  setTimeout(follow, EVERY);
}

if (section) setTimeout(follow, EVERY);
