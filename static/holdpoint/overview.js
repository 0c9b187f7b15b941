// Keeps the overview's figures fresh: the fragment again every ten seconds, 304 while nothing has changed.
const EVERY = 10000;
const place = document.querySelector("[data-figures]");
const said = document.querySelector("[data-fresh]");
let tag = "";

async function follow() {
  if (document.visibilityState === "visible") {
    try {
      const headers = tag ? { "If-None-Match": tag } : {};
      const answer = await fetch(place.dataset.figures, { headers, cache: "no-store", redirect: "error" });
      if (answer.status === 200) {
        tag = answer.headers.get("ETag") || "";
        show(await answer.text());
      } else if (answer.status !== 304) throw new Error(String(answer.status));
      said.textContent = `Live. Last update ${new Date().toISOString().slice(11, 19)} UTC.`;
    } catch {
      said.textContent = "Could not update the figures. They may be out of date. Trying again.";
    }
  }
  setTimeout(follow, EVERY);
}

// What somebody opened stays open, and what has the focus keeps it.
function show(text) {
  const open = [...place.querySelectorAll("details")].map((one) => one.open);
  const focused = place.contains(document.activeElement) ? document.activeElement.getAttribute("href") : null;
  place.innerHTML = text;
  place.querySelectorAll("details").forEach((one, index) => { one.open = open[index] ?? false; });
  if (focused) place.querySelector(`a[href="${CSS.escape(focused)}"]`)?.focus();
}

if (place) setTimeout(follow, EVERY);
