// Where in a JSON text does a pointer lead? Reads the text as far as it can; what is not there gives its parent's place.

const SPACE = /\s*/y;
const STRING = /"(?:[^"\\]|\\.)*"/y;
const SCALAR = /[^\s,\]}]+/y;

export function placeOf(text, pointer) {
  const way = pointer.split("/").slice(1).map((part) => part.replaceAll("~1", "/").replaceAll("~0", "~"));
  let at = 0;
  let found = null;

  function match(pattern) {
    pattern.lastIndex = at;
    const hit = pattern.exec(text);
    if (hit) at = pattern.lastIndex;
    return hit?.[0];
  }

  // Reads one value; `depth` parts of the pointer have led here, or -1 when it leads elsewhere.
  function value(depth, keyStart) {
    match(SPACE);
    const start = at;
    const opening = text[at];
    if (opening === "{" || opening === "[") {
      at += 1;
      members(opening === "{" ? "}" : "]", depth);
    } else if (opening === '"') match(STRING);
    else match(SCALAR);
    if (depth >= 0 && (!found || found.depth < depth)) found = { depth, start: keyStart ?? start, end: at };
  }

  function members(closing, depth) {
    for (let index = 0; at < text.length; index += 1) {
      match(SPACE);
      if (text[at] === closing) { at += 1; return; }
      const before = at;
      const keyStart = closing === "}" ? at : undefined;
      let name = String(index);
      if (closing === "}") {
        const key = match(STRING);
        if (key === undefined) return;
        try { name = JSON.parse(key); } catch { return; }
        match(SPACE);
        if (text[at] !== ":") return;
        at += 1;
      }
      value(depth >= 0 && depth < way.length && way[depth] === name ? depth + 1 : -1, keyStart);
      match(SPACE);
      if (text[at] === ",") at += 1;
      else if (at === before) return;
    }
  }

  value(0);
  return found && { start: found.start, end: found.end };
}
