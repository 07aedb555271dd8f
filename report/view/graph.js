// The program as a graph: kernels and calls as boxes, what flows between them as edges with types.

/** Inputs, parameters, buffers, constants and results are arrays; the others are steps. */
const BOXES = {
  kernel: { least: 180, most: 340, height: 62 },
  call: { least: 180, most: 340, height: 44 },
  array: { least: 110, most: 220, height: 40 },
};

/** The size of a node's box: as wide as its texts, within limits. */
function boxOf(node) {
  const { least, most, height } = BOXES[node.kind] || BOXES.array;
  const letters = Math.max(
    node.name.length,
    node.kind === "kernel" ? 0 : node.kind.length + (node.type || "").length,
  );
  return { width: Math.max(least, Math.min(most, letters * 7.4 + 30)), height };
}

function drawGraph(main) {
  const { nodes, edges } = data.graph;
  const indices = new Map(nodes.map((node, index) => [node.id, index]));
  const ends = edges.map((edge) => ({
    name: edge.name,
    from: indices.get(edge.from),
    to: indices.get(edge.to),
  }));
  const ports = portsOf(ends);
  const places = layered(
    nodes.map((node) => ({ ...boxOf(node), source: isSource(node) })),
    ends,
    (layer) => 34 + 13 * Math.max(0, ...layer.map(({ index }) => named(ports[index] || []).length)),
  );
  const right = Math.max(...ports.map((own, index) => labelsEnd(places.places[index], own)));
  const width = Math.max(places.width, right) + 24;
  const picture = svg("svg", {
    width,
    height: places.height + 24,
    viewBox: `-12 -12 ${width} ${places.height + 24}`,
    role: "group",
    "aria-label": "Graph of kernels; the same as a table stands below it",
  });
  const lines = edges.map((edge, index) => drawEdge(places, ports, ends[index], index));
  const boxes = nodes.map((node, index) => drawNode(node, index, places.places[index]));
  const labels = ports.map((own, index) => drawLabels(places.places[index], own));
  picture.append(svg("g", { class: "edges" }, lines), svg("g", {}, labels), ...boxes);
  roving(
    picture,
    boxes,
    (key, from) => nearest(places.places, from, key),
    Math.max(
      0,
      nodes.findIndex((node) => node.kind === "kernel"),
    ),
  );
  const frame = el("div", { class: "graph scroll", tabindex: -1 }, picture);
  main.append(
    section(
      "graph",
      2,
      "Graph of kernels",
      el(
        "div",
        { class: "beside" },
        el("div", { class: "first" }, frame, edgeTable(ends)),
        el("div", {}, kernelTable(), drawCalls()),
      ),
    ),
  );
  on("kernel", () => {
    const { name } = data.kernels[state.kernel];
    boxes.forEach((box, index) => {
      const chosen = nodes[index].kind === "kernel" && nodes[index].name === name;
      box.classList.toggle("selected", chosen);
      if (nodes[index].kind === "kernel") box.setAttribute("aria-pressed", chosen);
    });
    lines.forEach((line, index) =>
      line.classList.toggle(
        "selected",
        [ends[index].from, ends[index].to].some(
          (end) => nodes[end].kind === "kernel" && nodes[end].name === name,
        ),
      ),
    );
    const first = nodes.findIndex((node) => node.kind === "kernel" && node.name === name);
    if (first >= 0) show(frame, places.places[first]);
  });
}

function isSource(node) {
  return !["kernel", "call", "result"].includes(node.kind);
}

/** Scrolls the frame, and not the page, to a place. */
function show(frame, place) {
  const margin = 80;
  if (
    place.y < frame.scrollTop + margin ||
    place.y > frame.scrollTop + frame.clientHeight - margin
  ) {
    frame.scrollTop = place.y - frame.clientHeight / 2;
  }
  if (
    place.x < frame.scrollLeft + margin ||
    place.x > frame.scrollLeft + frame.clientWidth - margin
  ) {
    frame.scrollLeft = place.x - frame.clientWidth / 2;
  }
}

/** For each node, the buffers that leave it: the edges of each, and whether they are named there. */
function portsOf(ends) {
  const { nodes, edges } = data.graph;
  return nodes.map((node, index) => {
    const names = new Map();
    edges.forEach((edge, each) => {
      if (ends[each].from !== index) return;
      if (!names.has(edge.name)) names.set(edge.name, { edges: [], label: null });
      names.get(edge.name).edges.push(each);
    });
    const ports = [...names.values()];
    for (const port of ports) {
      // Inputs and results are named in their boxes.
      const named =
        isSource(node) || port.edges.every((each) => nodes[ends[each].to].kind === "result");
      port.label = named ? null : port.edges[0];
    }
    return ports;
  });
}

function portX(place, ports, number) {
  return (
    place.x + (number + 0.5 - ports.length / 2) * Math.min(60, (place.width - 20) / ports.length)
  );
}

function drawEdge(places, ports, { from, to }, index) {
  const own = ports[from];
  const number = own.findIndex((port) => port.edges.includes(index));
  const points = places.paths[index].map(({ x, y, room }) => ({ x, y, room }));
  const down = points.at(-1).y >= points[0].y ? 1 : -1;
  const [source, target] = [places.places[from], places.places[to]];
  points[0] = { x: portX(source, own, number), y: source.y + (down * source.height) / 2 };
  const last = points.length - 1;
  // What arrives at a box arrives spread by where it comes from.
  const shift = Math.max(-0.4, Math.min(0.4, (points[last - 1].x - target.x) / 600)) * target.width;
  points[last] = { x: target.x + shift, y: target.y - (down * target.height) / 2 };
  const path = curve(points);
  const { x, y } = points[last];
  return svg(
    "g",
    { class: "edge" },
    svg("path", { d: path }),
    svg("path", {
      class: "tip",
      d: `M${x - 4},${y - down * 7} L${x},${y} L${x + 4},${y - down * 7} Z`,
    }),
  );
}

/** A line through points one below the other, upright where it passes a layer and where it ends. */
function curve(points) {
  let path = `M${points[0].x},${points[0].y}`;
  const down = points.at(-1).y >= points[0].y ? 1 : -1;
  let bottom = points[0].y;
  points.slice(1).forEach(({ x, y, room }, index) => {
    const before = points[index].x;
    const top = y - (down * (room || 0)) / 2;
    const middle = (bottom + top) / 2;
    path += ` C${before},${middle} ${x},${middle} ${x},${top}`;
    bottom = y + (down * (room || 0)) / 2;
    if (room) path += ` V${bottom}`;
  });
  return path;
}

/** The buffers that are named where they leave a box. */
function named(ports) {
  return ports.filter((port) => port.label !== null);
}

/** How far to the right the names of a box's buffers reach. */
function labelsEnd(place, ports) {
  const ends = ports.map((port, number) => {
    const { name, type } =
      port.label === null ? { name: "", type: "" } : data.graph.edges[port.label];
    return portX(place, ports, number) + 5 + (name.length + type.length + 1) * LETTER;
  });
  return Math.max(0, ...ends);
}

function drawLabels(place, ports) {
  let line = 0;
  return ports.map((port, number) => {
    if (port.label === null) return null;
    line += 1;
    return svg(
      "text",
      {
        class: "label",
        x: portX(place, ports, number) + 5,
        y: place.y + place.height / 2 + 2 + 13 * line,
      },
      words(`graph.edges.${port.label}.name`, "", "svg:tspan"),
      " ",
      svg("tspan", { class: "type" }, words(`graph.edges.${port.label}.type`, "", "svg:tspan")),
    );
  });
}

function drawNode(node, index, place) {
  const path = `graph.nodes.${index}`;
  const [left, top] = [place.x - place.width / 2, place.y - place.height / 2];
  const inside = svg("foreignObject", {
    x: left,
    y: top,
    width: place.width,
    height: place.height,
  });
  const kernel =
    node.kind === "kernel" ? data.kernels.findIndex((each) => each.name === node.name) : -1;
  const box = svg(
    "g",
    { class: `node ${node.kind}`, role: kernel >= 0 ? "button" : "img" },
    svg("rect", {
      x: left,
      y: top,
      width: place.width,
      height: place.height,
      rx: isSource(node) || node.kind === "result" ? 20 : 5,
    }),
    inside,
  );
  if (kernel >= 0) {
    const cost = data.kernels[kernel].cost;
    if (cost && cost.bound)
      box.classList.add(cost.bound === "compute" ? "by-compute" : "by-memory");
    box.addEventListener("click", () => selectKernel(kernel));
    box.addEventListener("keydown", (event) => activate(event, () => selectKernel(kernel)));
    inside.append(
      el("div", { class: "box" }, el("b", {}, words(`${path}.name`)), kernelLines(kernel)),
    );
  } else {
    inside.append(
      el(
        "div",
        { class: "box" },
        el("b", {}, words(`${path}.name`)),
        el(
          "span",
          {},
          node.kind,
          node.type ? [" ", words(`${path}.type`)] : null,
          node.kind === "call" ? " of other code" : null,
        ),
      ),
    );
    box.setAttribute("aria-label", `${node.kind} ${node.name} ${node.type || ""}`);
  }
  return box;
}

/** What a kernel's box says below its name. */
function kernelLines(kernel) {
  const { cost } = data.kernels[kernel];
  if (!cost) return el("span", {}, "cost not known");
  const time =
    typeof at(leastTime(kernel)) === "number"
      ? [" · ", number(leastTime(kernel), "seconds")]
      : null;
  return [
    el("span", {}, number(`kernels.${kernel}.cost.bytes`, "bytes"), time),
    el("span", {}, cost.bound ? [bound(kernel), " bound"] : "bound not known"),
  ];
}

/** All kernels with what they cost, the picture's text, and the fastest way to one. */
function kernelTable() {
  const measured = data.kernels.some((kernel) => kernel.measured_seconds !== null);
  const compiled = data.kernels.some((kernel) => kernel.resources);
  const rows = data.kernels.map((kernel, index) => {
    const path = `kernels.${index}`;
    return row(
      el("a", { href: `#${encodeURIComponent(kernel.name)}` }, words(`${path}.name`)),
      number(`${path}.launches`, "count"),
      number(leastTime(index), "seconds"),
      ...(measured ? [number(`${path}.measured_seconds`, "seconds")] : []),
      number(`${path}.cost.bytes`, "bytes"),
      bound(index),
      ...(compiled
        ? [
            number(`${path}.resources.registers`, "count"),
            number(`${path}.resources.spill_loads`, "count"),
            number(`${path}.occupancy.share`, "share"),
          ]
        : []),
    );
  });
  on("kernel", () =>
    rows.forEach((each, index) => {
      each.classList.toggle("selected", index === state.kernel);
      each.querySelector("a").setAttribute("aria-current", index === state.kernel);
    }),
  );
  const heads = [
    "kernel",
    "launches",
    "least time",
    ...(measured ? ["measured"] : []),
    "bytes",
    "bound by",
    ...(compiled ? ["registers", "spills", "occupancy"] : []),
  ];
  return table("Kernels", heads, rows, { class: "kernels" });
}

function edgeTable(ends) {
  const rows = data.graph.edges.map((edge, index) =>
    row(
      words(`graph.nodes.${ends[index].from}.name`),
      words(`graph.edges.${index}.name`),
      words(`graph.edges.${index}.type`),
      number(`graph.edges.${index}.bytes`, "bytes"),
      words(`graph.nodes.${ends[index].to}.name`),
    ),
  );
  return alternative(table("Edges of the graph", ["from", "buffer", "type", "bytes", "to"], rows));
}

function drawCalls() {
  if (!data.calls.length) return null;
  const rows = data.calls.map((_, index) =>
    row(
      words(`calls.${index}.operator`, "", "code"),
      number(`calls.${index}.count`, "count"),
      words(`calls.${index}.reason`),
    ),
  );
  return el(
    "div",
    {},
    el("h3", {}, "Calls of other code"),
    table("Calls", ["operator", "times", "why"], rows),
  );
}
