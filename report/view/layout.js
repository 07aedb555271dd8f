// Where the boxes of a layered graph stand: layers by longest paths, order by barycentres.

/**
 * Places of nodes and of the points that edges pass, top to bottom.
 *
 * `nodes`: [{width, height, source}], `source` for those that stand right above what reads them first.
 * `edges`: [{from, to, name}] by index. `gap(layer)`: pixels below a layer.
 * Returns {places: [{x, y}] of centres, paths: [[{x, y, room}, …] for each edge], width, height},
 * `room` the height of the layer that a point is in.
 */
function layered(nodes, edges, gap) {
  const rank = ranks(nodes, edges);
  const items = nodes.map((node, index) => ({
    ...node,
    rank: rank[index],
    index,
    up: [],
    down: [],
  }));
  const trunks = new Map();
  const chains = edges.map((edge) => chain(items, edge, trunks));
  const layers = [];
  for (const item of items) (layers[item.rank] ||= []).push(item);
  order(layers);
  spread(layers);
  let y = 0;
  for (const layer of layers) {
    const height = Math.max(...layer.map((item) => item.height));
    for (const item of layer) {
      item.y = y + height / 2;
      item.room = height;
    }
    y += height + gap(layer);
  }
  const left = Math.min(...items.map((item) => item.x - item.width / 2));
  for (const item of items) item.x -= left;
  return {
    places: items.slice(0, nodes.length),
    paths: chains,
    width: Math.max(...items.map((item) => item.x + item.width / 2)),
    height: Math.max(...items.map((item) => item.y + item.height / 2)),
  };
}

/** The layer of each node. Edges that close a cycle are not followed. */
function ranks(nodes, edges) {
  const missing = nodes.map(() => 0);
  for (const { to } of edges) missing[to] += 1;
  const rank = nodes.map(() => 0);
  const open = new Set(nodes.keys());
  while (open.size) {
    const found = [...open].find((node) => missing[node] <= 0);
    const node = found === undefined ? open.values().next().value : found;
    open.delete(node);
    for (const edge of edges) {
      if (edge.from !== node || !open.has(edge.to)) continue;
      missing[edge.to] -= 1;
      rank[edge.to] = Math.max(rank[edge.to], rank[node] + 1);
    }
  }
  nodes.forEach((node, index) => {
    const below = edges.filter((edge) => edge.from === index).map((edge) => rank[edge.to]);
    if (node.source && below.length) rank[index] = Math.max(0, Math.min(...below) - 1);
  });
  const first = Math.min(...rank);
  return rank.map((each) => each - first);
}

/**
 * The items that an edge passes: its ends, and a narrow one in each layer between.
 *
 * Edges of one buffer have those in common, so that it runs down in one line and branches off it.
 */
function chain(items, { from, to, name }, trunks) {
  const path = [items[from]];
  const step = Math.sign(items[to].rank - items[from].rank);
  const join = (next) => {
    const [upper, lower] = step < 0 ? [next, path.at(-1)] : [path.at(-1), next];
    if (!upper.down.includes(lower)) {
      upper.down.push(lower);
      lower.up.push(upper);
    }
    path.push(next);
  };
  for (let rank = items[from].rank + step; step && rank !== items[to].rank; rank += step) {
    const key = JSON.stringify([from, name, rank]);
    if (!trunks.has(key)) {
      trunks.set(key, { width: 14, height: 0, rank, up: [], down: [], index: items.length });
      items.push(trunks.get(key));
    }
    join(trunks.get(key));
  }
  join(items[to]);
  return path;
}

const SWEEPS = 12;

/** Orders each layer by the mean position of its neighbours above, then below, several times. */
function order(layers) {
  const number = (layer) =>
    layer.forEach((item, index) => {
      item.order = (index + 0.5) / layer.length;
    });
  layers.forEach(number);
  for (let sweep = 0; sweep < SWEEPS; sweep += 1) {
    const side = sweep % 2 ? "down" : "up";
    for (const layer of sweep % 2 ? [...layers].reverse() : layers) {
      const wish = new Map(
        layer.map((item) => {
          const near = item[side].length ? item[side] : [item];
          return [item, near.reduce((sum, each) => sum + each.order, 0) / near.length];
        }),
      );
      layer.sort((a, b) => wish.get(a) - wish.get(b));
      number(layer);
    }
  }
}

/** Moves items to the mean of their neighbours, as far as their order and widths let them. */
function spread(layers) {
  for (const layer of layers) {
    let x = 0;
    for (const item of layer) {
      item.x = x + item.width / 2;
      x += item.width + APART;
    }
    for (const item of layer) item.x -= x / 2;
  }
  for (let sweep = 0; sweep < 4 * SWEEPS; sweep += 1) {
    for (const layer of sweep % 2 ? [...layers].reverse() : layers) {
      const wishes = layer.map((item) => {
        const near = [...item.up, ...item.down];
        return near.length ? near.reduce((sum, each) => sum + each.x, 0) / near.length : item.x;
      });
      settle(layer, wishes);
    }
  }
}

const APART = 18;

/**
 * The places nearest to the wishes (least squares) at which no two items of a layer touch. Lines
 * weigh more than boxes, so that they run straight.
 */
function settle(layer, wishes) {
  let offset = 0;
  const offsets = layer.map((item, index) => {
    if (index) offset += (layer[index - 1].width + item.width) / 2 + APART;
    return offset;
  });
  const blocks = [];
  wishes.forEach((wish, index) => {
    const weight = layer[index].height ? 1 : 3;
    let block = { sum: (wish - offsets[index]) * weight, weight, count: 1 };
    while (blocks.length && blocks.at(-1).sum / blocks.at(-1).weight >= block.sum / block.weight) {
      const { sum, weight, count } = blocks.pop();
      block = { sum: sum + block.sum, weight: weight + block.weight, count: count + block.count };
    }
    blocks.push(block);
  });
  let index = 0;
  for (const { sum, weight, count } of blocks) {
    for (let each = 0; each < count; each += 1, index += 1) {
      layer[index].x = sum / weight + offsets[index];
    }
  }
}
