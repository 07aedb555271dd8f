// Which banks or sectors the lanes of a warp touch, as a picture.

const BANKS = 32;
const WORD = 4; // bytes of a bank's word
const SECTOR = 32; // bytes that global memory moves at once
const CELL = 13; // pixels

/**
 * What each lane touches in shared memory: [{lane, bank, words, turn}], `words` all that the bank gives.
 *
 * A request is 128 bytes: wider accesses are requests of fewer lanes. In a request, a bank gives one word a
 * turn; the words of a bank take turns in the order of the lanes.
 */
function bankTurns(lanes, bytes) {
  const share = Math.max(1, Math.floor((lanes.length * WORD) / Math.max(bytes, WORD)));
  const turns = new Map();
  const cells = [];
  lanes.forEach((begin, lane) => {
    if (begin === null) return;
    for (let word = Math.floor(begin / WORD); word * WORD < begin + bytes; word += 1) {
      const bank = word % BANKS;
      const key = `${Math.floor(lane / share)}/${bank}`;
      if (!turns.has(key)) turns.set(key, []);
      const words = turns.get(key);
      if (!words.includes(word)) words.push(word);
      cells.push({ lane, bank, words, turn: words.indexOf(word) });
    }
  });
  return cells;
}

/** Lanes by banks: a cell for each word that a lane touches, coloured and numbered by its turn. */
function bankPicture(access) {
  const cells = bankTurns(access.lanes, access.width * access.element_bytes);
  const picture = grid(
    BANKS,
    access.lanes.length,
    "bank",
    "Shared memory: banks from left to right, lanes from top to bottom",
  );
  for (const { lane, bank, words, turn } of cells) {
    const [x, y] = [bank * CELL, lane * CELL];
    picture.append(
      svg(
        "g",
        { class: `cell turn-${Math.min(turn, 4)}` },
        svg("rect", { x: x + 0.5, y: y + 0.5, width: CELL - 1, height: CELL - 1 }),
        words.length > 1
          ? svg("text", { class: "tick", x: x + CELL / 2, y: y + CELL - 3.5 }, String(turn + 1))
          : null,
      ),
    );
  }
  return picture;
}

/** Lanes by sectors of global memory: a bar for the bytes that a lane touches of each sector. */
function sectorPicture(access) {
  const bytes = access.width * access.element_bytes;
  const sectors = new Set();
  access.lanes.forEach((begin) => {
    if (begin === null) return;
    for (let sector = Math.floor(begin / SECTOR); sector * SECTOR < begin + bytes; sector += 1)
      sectors.add(sector);
  });
  const columns = [...sectors].sort((a, b) => a - b);
  const width = Math.max(CELL, Math.min(4 * CELL, (BANKS * CELL) / Math.max(1, columns.length)));
  const picture = grid(
    columns.length,
    access.lanes.length,
    "sector",
    "Global memory: sectors from left to right, lanes from top to bottom",
    width,
  );
  columns.forEach((sector, index) => {
    if (index && columns[index - 1] !== sector - 1) {
      picture.append(
        svg("line", {
          class: "apart",
          x1: index * width,
          x2: index * width,
          y1: -4,
          y2: access.lanes.length * CELL,
        }),
      );
    }
  });
  access.lanes.forEach((begin, lane) => {
    if (begin === null) return;
    columns.forEach((sector, index) => {
      const first = Math.max(begin, sector * SECTOR);
      const end = Math.min(begin + bytes, (sector + 1) * SECTOR);
      if (first >= end) return;
      const scale = width / SECTOR;
      picture.append(
        svg("rect", {
          class: "touched",
          x: index * width + (first - sector * SECTOR) * scale,
          y: lane * CELL + 1.5,
          width: Math.max(1.5, (end - first) * scale - 0.5),
          height: CELL - 3,
        }),
      );
    });
  });
  return picture;
}

/** The empty picture with its axes. */
function grid(columns, rows, name, label, width) {
  const cell = width || CELL;
  const [right, bottom] = [columns * cell, rows * CELL];
  const picture = svg("svg", {
    class: "grid",
    role: "img",
    "aria-label": label,
    width: right + 44,
    height: bottom + 34,
    viewBox: `-38 -28 ${right + 44} ${bottom + 34}`,
  });
  picture.append(svg("rect", { class: "ground", x: 0, y: 0, width: right, height: bottom }));
  for (let column = 0; column <= columns; column += 1) {
    picture.append(
      svg("line", {
        class: column % 8 ? "thin" : "thick",
        x1: column * cell,
        x2: column * cell,
        y1: 0,
        y2: bottom,
      }),
    );
  }
  for (let lane = 0; lane <= rows; lane += 1) {
    picture.append(
      svg("line", {
        class: lane % 8 ? "thin" : "thick",
        x1: 0,
        x2: right,
        y1: lane * CELL,
        y2: lane * CELL,
      }),
    );
    if (lane % 8 === 0 && lane < rows)
      picture.append(
        svg("text", { class: "tick end", x: -4, y: lane * CELL + CELL - 2 }, String(lane)),
      );
  }
  const every = columns > 8 ? 8 : 1;
  for (let column = 0; column < columns; column += every) {
    picture.append(
      svg("text", { class: "tick middle", x: (column + 0.5) * cell, y: -4 }, String(column)),
    );
  }
  picture.append(svg("text", { class: "axis middle", x: right / 2, y: -17 }, name));
  picture.append(
    svg(
      "text",
      { class: "axis middle", x: 0, y: 0, transform: `translate(-28 ${bottom / 2}) rotate(-90)` },
      "lane",
    ),
  );
  return picture;
}
