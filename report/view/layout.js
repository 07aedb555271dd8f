// Where the boxes of a layered graph stand: layers by longest paths, order by barycentres.

/**
 * Places of nodes and of the points that edges pass, top to bottom.
 *
 * `nodes`: [{width, height, source}], `source` for those that stand right above what reads them first.
 * `edges`: [{from, to}] by index. `gaps`: pixels below each layer, or a function of the layer's nodes.
 * Returns {places: [{x, y}] of centres, paths: [[{x, y}, …] for each edge], width, height}.
 */
function layered(nodes, edges, gap) {
  const rank = ranks(nodes, edges);
  const items = nodes.map((node, index) => ({ ...node, rank: rank[index], index, up: [], down: [] }));
  const chains = edges.map(({ from, to }) => chain(items, from, to));
  const layers = [];
  for (const item of items) (layers[item.rank] ||= []).push(item);
  order(layers);
  spread(layers);
  let y = 0;
  for (const layer of layers) {
    const height = Math.max(...layer.map((item) => item.height));
    for (const item of layer) item.y = y + height / 2;
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

/** The items that an edge passes: its ends, and a narrow one in each layer between. */
function chain(items, from, to) {
  const path = [items[from]];
  const step = Math.sign(items[to].rank - items[from].rank);
  for (let rank = items[from].rank + step; step && rank !== items[to].rank; rank += step) {
    const item = { width: 14, height: 0, rank, up: [], down: [], index: items.length };
    items.push(item);
    path.push(item);
  }
  path.push(items[to]);
  for (let index = 1; index < path.length; index += 1) {
    const [upper, lower] = step < 0 ? [path[index], path[index - 1]] : [path[index - 1], path[index]];
    upper.down.push(lower);
    lower.up.push(upper);
  }
  return path;
}

const SWEEPS = 12;

/** Orders each layer by the mean position of its neighbours above, then below, several times. */
function order(layers) {
  const number = (layer) => layer.forEach((item, index) => { item.order = (index + 0.5) / layer.length; });
  layers.forEach(number);
  for (let sweep = 0; sweep < SWEEPS; sweep += 1) {
    const side = sweep % 2 ? "down" : "up";
    for (const layer of sweep % 2 ? [...layers].reverse() : layers) {
      const wish = new Map(layer.map((item) => {
        const near = item[side].length ? item[side] : [item];
        return [item, near.reduce((sum, each) => sum + each.order, 0) / near.length];
      }));
      layer.sort((a, b) => wish.get(a) - wish.get(b));
      number(layer);
    }
  }
}

/** Moves the items of each layer to the mean of their neighbours, as far as their order and widths let them. */
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

/** The places nearest to the wishes (least squares) at which no two items of a layer touch. */
function settle(layer, wishes) {
  let offset = 0;
  const offsets = layer.map((item, index) => {
    if (index) offset += (layer[index - 1].width + item.width) / 2 + APART;
    return offset;
  });
  const blocks = [];
  wishes.forEach((wish, index) => {
    let block = { sum: wish - offsets[index], count: 1 };
    while (blocks.length && blocks.at(-1).sum / blocks.at(-1).count >= block.sum / block.count) {
      const before = blocks.pop();
      block = { sum: before.sum + block.sum, count: before.count + block.count };
    }
    blocks.push(block);
  });
  let index = 0;
  for (const { sum, count } of blocks) {
    for (let each = 0; each < count; each += 1, index += 1) layer[index].x = sum / count + offsets[index];
  }
}
