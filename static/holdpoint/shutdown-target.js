// Shows only the fields that the chosen scope needs. Without this script all are shown and the others are ignored.
const form = document.querySelector("[data-target]");
const NEEDS = {
  contract: ["organization", "contract"],
  connector: ["organization", "connector"],
  organization: ["organization"],
  region: ["region"],
  global: [],
};

function update() {
  const needed = NEEDS[form.elements.scope.value] ?? Object.values(NEEDS).flat();
  for (const box of form.querySelectorAll("[data-field]")) {
    const name = box.dataset.field;
    if (name !== "scope") box.hidden = !needed.includes(name);
  }
}

form.elements.scope.addEventListener("change", update);
update();
