// After the card is swapped: focus on what matters in it, the open row marked, the phone shows the card.
import { say } from "./live.js";

function arrived(card) {
  const desk = document.querySelector(".desk");
  if (desk) desk.dataset.open = "card";
  const refusal = card.querySelector(".refusal");
  const heading = card.querySelector("h1");
  (refusal || heading || card).focus({ preventScroll: false });
  if (window.matchMedia("(max-width: 60rem)").matches) window.scrollTo(0, 0);
  else card.scrollTop = 0;
  const notice = card.querySelector(".notice");
  say([notice && notice.textContent, heading && heading.textContent].filter(Boolean).join(" "));
  mark(card);
}

function mark(card) {
  const sheet = card.querySelector("[data-review]");
  const id = sheet ? sheet.dataset.review : "";
  document.querySelectorAll(".row").forEach((row) => {
    const open = row.dataset.id === id;
    row.classList.toggle("open", open);
    const link = row.querySelector("a");
    if (open) link.setAttribute("aria-current", "true");
    else link.removeAttribute("aria-current");
  });
  const row = document.querySelector(".row.open");
  if (row) row.scrollIntoView({ block: "nearest" });
}

export function startFocus() {
  const card = document.getElementById("card");
  if (!card) return;
  document.addEventListener("htmx:afterSwap", (event) => event.detail.target === card && arrived(card));
  document.addEventListener("review-live", () => mark(card));
  mark(card);
}
