// Problems as a list: the place, and the message in <pre> because a condition's message has a caret under the spot.

function element(tag, text, className) {
  const made = document.createElement(tag);
  if (text !== undefined) made.textContent = text;
  if (className) made.className = className;
  return made;
}

export function problemList(problems) {
  const list = element("ul", undefined, "hp-problems");
  for (const problem of problems) {
    const item = element("li");
    if (problem.pointer) item.append(element("code", problem.pointer));
    item.append(element("pre", problem.message, problem.message.includes("\n") ? "hp-caret" : ""));
    list.append(item);
  }
  return list;
}

export { element };
