// Where compiling spent its seconds: a tree whose widths are times. Click or Enter shows a part alone.

const FLAME = 22; // pixels of a level

function drawFlame(main) {
  const body = el("div", { class: "flame" });
  const readout = makeReadout(
    "Point at a part, or move with arrow keys; click or Enter shows it alone, Escape shows all.",
  );
  main.append(
    section(
      "compile",
      2,
      "Compile time",
      facts([["in all", number("compile.seconds", "seconds")]]),
      body,
      readout.element,
      alternative(flameTable()),
    ),
  );
  flamePart("compile", body, readout);
}

/** The parts to draw: [{path, left, width, depth, parent}], as shares of the one at `root`. */
function flameParts(root) {
  const parts = [];
  function visit(path, left, width, depth, parent) {
    const node = at(path);
    const index = parts.length;
    parts.push({ path, node, left, width, depth, parent });
    let begin = left;
    node.children.forEach((child, number) => {
      const share = node.seconds ? (child.seconds / node.seconds) * width : 0;
      if (share > 0.0005) visit(`${path}.children.${number}`, begin, share, depth + 1, index);
      begin += share;
    });
  }
  visit(root, 0, 1, 0, -1);
  return parts;
}

function flamePart(root, body, readout, keep) {
  const parts = flameParts(root);
  const show = (path) => flamePart(path, body, readout, true);
  const items = parts.map(({ path, node, left, width, depth }) => {
    const button = el(
      "button",
      {
        type: "button",
        class: `part tone-${depth % 4}`,
        "aria-label": node.name,
        style: { left: `${left * 100}%`, width: `${width * 100}%`, top: `${depth * FLAME}px` },
      },
      words(`${path}.name`),
      " ",
      number(`${path}.seconds`, "seconds"),
    );
    button.addEventListener("click", () => show(path));
    return button;
  });
  speaking(items, (index) =>
    readout.say(
      words(`${parts[index].path}.name`, "", "code"),
      ": ",
      number(`${parts[index].path}.seconds`, "seconds"),
    ),
  );
  body.style.height = `${(Math.max(...parts.map((part) => part.depth)) + 1) * FLAME}px`;
  const inside = el("div", {}, items);
  const back =
    root === "compile"
      ? ""
      : el("button", { type: "button", class: "back", click: () => show("compile") }, "Show all");
  body.replaceChildren(inside);
  body.parentNode.querySelector(".back")?.remove();
  if (back) body.before(back);
  roving(inside, items, (key, from) => treeStep(parts, from, key));
  inside.addEventListener("keydown", (event) => {
    if (event.key === "Escape") show("compile");
  });
  if (keep) items[0].focus({ preventScroll: true });
}

/** Down to the first child, up to the parent, and to the sides among siblings. */
function treeStep(parts, from, key) {
  const { parent, depth } = parts[from];
  if (key === "ArrowUp") return parent;
  if (key === "ArrowDown") return parts.findIndex((part) => part.parent === from);
  const level = parts
    .map((part, index) => ({ ...part, index }))
    .filter((part) => part.depth === depth);
  const here = level.findIndex((part) => part.index === from);
  const next =
    key === "ArrowLeft" ? level[here - 1] : key === "ArrowRight" ? level[here + 1] : null;
  return next ? next.index : undefined;
}

function flameTable() {
  const rows = [];
  function visit(path, depth) {
    rows.push(
      row(
        el(
          "span",
          { style: { paddingLeft: `${depth * 16}px` } },
          words(`${path}.name`, "", "code"),
        ),
        number(`${path}.seconds`, "seconds"),
      ),
    );
    at(path).children.forEach((_, index) => visit(`${path}.children.${index}`, depth + 1));
  }
  visit("compile", 0);
  return table("Seconds of compiling", ["part", "seconds"], rows);
}
