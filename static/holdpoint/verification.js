// Follows a verification: how far it is every two seconds, the whole page when it has finished.
const EVERY = 2000;
const section = document.querySelector("[data-verification]");

async function follow() {
  const said = section.querySelector("[data-said]");
  try {
    const answer = await fetch(section.dataset.verification, { headers: { Accept: "application/json" } });
    if (!answer.ok) throw new Error(String(answer.status));
    const found = await answer.json();
    if (!found.waiting) {
      location.reload();
      return;
    }
    section.querySelector("[data-bar]").value = found.share;
    said.textContent = `${found.done.toLocaleString("en")} of ${found.total.toLocaleString("en")} entries`;
  } catch {
    said.textContent = "Could not read the progress. Trying again.";
  }
  setTimeout(follow, EVERY);
}

if (section) setTimeout(follow, EVERY);
