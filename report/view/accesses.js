// Each access of the kernel to memory: how wide it is, and what a warp's request costs.

function drawAccesses(parent) {
  const body = el("div", {});
  parent.append(section("accesses", 3, "Accesses to memory", body));
  on("kernel", () => {
    const path = `kernels.${state.kernel}.accesses`;
    const accesses = at(path);
    if (!accesses.length) body.replaceChildren(none("Nothing is known of accesses."));
    else if (accesses.every((access) => access.cost === null && access.lanes === null))
      body.replaceChildren(strideTable(path, accesses));
    else body.replaceChildren(warpTable(path, accesses));
  });
}

/** On CPUs: how far neighbours of the innermost loop are apart. */
function strideTable(path, accesses) {
  const rows = accesses.map((access, index) =>
    row(
      lineButton("tile", access.line, words(`${path}.${index}.operation`, "", "code")),
      words(`${path}.${index}.memory`, "", "code"),
      number(`${path}.${index}.count`, "count"),
      number(`${path}.${index}.element_bytes`, "bytes"),
      access.stride === null
        ? el("span", { class: "unknown" }, "found in data")
        : number(`${path}.${index}.stride`, "count"),
    ),
  );
  return table(
    "Accesses",
    ["operation", "memory", "accesses", "element", "stride in elements"],
    rows,
  );
}

/** On GPUs: what a warp's request costs, and beside it the lanes of the one that is chosen. */
function warpTable(path, accesses) {
  const side = el("div", { class: "picture", "aria-live": "polite" });
  const rows = accesses.map((access, index) => warpRow(path, access, index, () => choose(index)));
  function choose(index) {
    rows.forEach((each, number) => {
      each.classList.toggle("selected", number === index);
      each.querySelector("button.choose").setAttribute("aria-pressed", number === index);
    });
    side.replaceChildren(...warpPicture(`${path}.${index}`, accesses[index]));
  }
  const worst = accesses.reduce(
    (most, access, index) => (excess(access) > excess(accesses[most]) ? index : most),
    0,
  );
  choose(worst);
  return el(
    "div",
    { class: "beside" },
    table(
      "Accesses",
      ["lanes", "operation", "memory", "space", "accesses", "element", "width", "cost", "least", ""],
      rows,
    ),
    side,
  );
}

/** How many times the least an access costs: for the length of its bar and which one is shown first. */
function excess(access) {
  return access.cost && access.least ? access.cost / access.least : 0;
}

function warpRow(path, access, index, choose) {
  const each = `${path}.${index}`;
  const more = excess(access) > 1;
  return row(
    el(
      "button",
      { type: "button", class: "choose", "aria-pressed": "false", click: choose },
      access.lanes ? "show" : "facts",
    ),
    lineButton("tile", access.line, words(`${each}.operation`, "", "code")),
    words(`${each}.memory`, "", "code"),
    words(`${each}.space`),
    number(`${each}.count`, "count"),
    number(`${each}.element_bytes`, "bytes"),
    number(`${each}.width`, "count"),
    number(`${each}.cost`, "count"),
    number(`${each}.least`, "count"),
    access.cost === null
      ? ""
      : el(
          "span",
          { class: more ? "bad" : "good" },
          more ? `✗ ${access.space === "shared" ? "conflicts" : "not coalesced"}` : "✓ least",
        ),
  );
}

function warpPicture(path, access) {
  const shared = access.space === "shared";
  const unit = shared ? " turns" : " sectors";
  const head = el(
    "p",
    {},
    words(`${path}.operation`, "", "code"),
    " of ",
    words(`${path}.memory`, "", "code"),
    ": a warp's request takes ",
    number(`${path}.cost`, "count"),
    unit,
    ", the least possible is ",
    number(`${path}.least`, "count"),
    ".",
  );
  if (!access.lanes) return [head, none("Where its lanes begin is found in data, or not known.")];
  const note = shared
    ? "A filled cell is a word that a lane touches; where a bank gives several, its number is the turn."
    : "A bar is what a lane touches of a sector; dashes part sectors that are no neighbours.";
  return [
    head,
    el(
      "div",
      { class: "scroll", tabindex: 0, role: "group", "aria-label": "Lanes of a warp" },
      shared ? bankPicture(access) : sectorPicture(access),
    ),
    el("p", { class: "hint" }, note),
    laneTable(path, access),
  ];
}

function laneTable(path, access) {
  const rows = access.lanes.map((begin, lane) =>
    row(
      el("span", { class: "tick" }, String(lane)),
      begin === null
        ? el("span", { class: "unknown" }, "does nothing")
        : number(`${path}.lanes.${lane}`, "count"),
    ),
  );
  return alternative(table("Where each lane begins", ["lane", "byte"], rows));
}
