// A reason that demands a note makes the note required. The server insists either way.
export function startReasons() {
  document.addEventListener("change", (event) => {
    if (!event.target.matches("[data-reason]")) return;
    const note = event.target.form.querySelector("textarea[data-note]");
    const option = event.target.selectedOptions[0];
    note.required = Boolean(option) && option.dataset.note === "yes";
  });
}
