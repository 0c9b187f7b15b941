// The bar that appears when items are chosen for one answer.
function show() {
  const bar = document.getElementById("bulk");
  if (!bar) return;
  const chosen = document.querySelectorAll(".pick:checked").length;
  bar.hidden = chosen === 0;
  document.getElementById("bulk-count").textContent = chosen ? `${chosen} chosen` : "";
}

export function startPicks() {
  document.addEventListener("change", (event) => event.target.matches(".pick") && show());
  document.addEventListener("review-live", show);
  document.getElementById("bulk-clear")?.addEventListener("click", () => {
    document.querySelectorAll(".pick:checked").forEach((box) => (box.checked = false));
    show();
  });
  show();
}
