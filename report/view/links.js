// Which lines came from which. Level 0 is the sources, level n the stage n - 1.

/** The lines of every level, the inverse of `from` where it was asked for, and where each source begins. */
const levels = [];

function prepareLevels() {
  const source = { title: "Source", name: "source", language: "python", lines: [], places: [] };
  const begins = [];
  data.sources.forEach((excerpt, index) => {
    begins.push(source.lines.length);
    excerpt.lines.forEach((line, at) => {
      source.lines.push(line);
      source.places.push({ source: index, line: at });
    });
  });
  levels.push({ ...source, begins, children: null });
  for (const stage of data.stages) levels.push({ ...stage, children: null });
}

/** The lines of the level above that a line came from. */
function parents(level, line) {
  const from = level ? levels[level].from[line] : null;
  if (!from) return [];
  if (level > 1) return from;
  return from.map(([source, at]) => levels[0].begins[source] + at);
}

/** For each line, where its children begin in one array of them all: two arrays of integers. */
function childrenOf(level) {
  if (levels[level].children) return levels[level].children;
  const begins = new Int32Array(levels[level].lines.length + 1);
  const below = levels[level + 1].lines.length;
  for (let line = 0; line < below; line += 1) {
    for (const parent of parents(level + 1, line)) begins[parent + 1] += 1;
  }
  for (let line = 1; line < begins.length; line += 1) begins[line] += begins[line - 1];
  const next = begins.slice();
  const lines = new Int32Array(begins[begins.length - 1]);
  for (let line = 0; line < below; line += 1) {
    for (const parent of parents(level + 1, line)) {
      lines[next[parent]] = line;
      next[parent] += 1;
    }
  }
  levels[level].children = { begins, lines };
  return levels[level].children;
}

/** For each level, the set of lines that a line came from or became, itself among them. */
function related(level, line) {
  const sets = levels.map(() => new Set());
  sets[level].add(line);
  for (let above = level; above > 0; above -= 1) {
    for (const each of sets[above])
      for (const parent of parents(above, each)) sets[above - 1].add(parent);
  }
  for (let below = level; below + 1 < levels.length; below += 1) {
    const { begins, lines } = childrenOf(below);
    for (const each of sets[below]) {
      for (let index = begins[each]; index < begins[each + 1]; index += 1)
        sets[below + 1].add(lines[index]);
    }
  }
  return sets;
}

/** For each level, the set of a kernel's own lines: its ranges, or what the lines below came from. */
function linesOf(kernel) {
  const { name } = data.kernels[kernel];
  const sets = levels.map(() => new Set());
  for (let level = levels.length - 1; level >= 0; level -= 1) {
    const ranges =
      level && Object.hasOwn(levels[level].kernels, name) ? levels[level].kernels[name] : null;
    if (ranges) {
      for (const [first, end] of ranges)
        for (let line = first; line < end; line += 1) sets[level].add(line);
    } else if (level + 1 < levels.length) {
      for (const each of sets[level + 1])
        for (const parent of parents(level + 1, each)) sets[level].add(parent);
    }
  }
  return sets;
}

/** The lines that a column shows of a level: all where no kernels are told apart, else the kernel's own. */
function shownLines(level, own) {
  const all = levels[level].lines.map((_, line) => line);
  if (!level) {
    const { places } = levels[0];
    const named = new Set([...own].map((line) => places[line].source));
    return named.size ? all.filter((line) => named.has(places[line].source)) : all;
  }
  return Object.keys(levels[level].kernels).length ? [...own].sort((a, b) => a - b) : all;
}

function levelNamed(name) {
  return levels.findIndex((level) => level.name === name);
}
