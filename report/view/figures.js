// Every figure and every text of the data that the page shows is made here, and says where it is from.

let data = null;

/** The value at a path such as `kernels.0.cost.bytes`; undefined if a step leads nowhere. */
function at(path) {
  let value = data;
  for (const step of String(path).split(".")) {
    if (value === null || value === undefined) return undefined;
    value = value[step];
  }
  return value;
}

const THOUSANDS = ["", " k", " M", " G", " T", " P"];
const SCALES = {
  bytes: { base: 1024, names: [" B", " KiB", " MiB", " GiB", " TiB"] },
  operations: { base: 1000, names: THOUSANDS },
  "bytes/s": { base: 1000, names: [" B/s", " kB/s", " MB/s", " GB/s", " TB/s", " PB/s"] },
  "operations/s": { base: 1000, names: THOUSANDS.map((name) => `${name || " "}op/s`) },
};
const SECONDS = [
  [1, " s"],
  [1e-3, " ms"],
  [1e-6, " µs"],
  [1e-9, " ns"],
  [1e-12, " ps"],
];

function digits(value) {
  return String(Math.abs(value) >= 100 ? Math.round(value) : Number(value.toPrecision(3)));
}

/** A value as it is read: three digits and a unit, or all digits of a count. */
function format(value, unit) {
  if (value === 0) return unit === "seconds" ? "0 s" : unit === "bytes" ? "0 B" : "0";
  if (unit === "count") return value.toLocaleString("en", { maximumFractionDigits: 2 });
  if (unit === "share") return `${digits(value * 100)} %`;
  if (unit === "plain") {
    return Math.abs(value) < 1e-3 ? value.toExponential(2) : String(Number(value.toPrecision(3)));
  }
  if (unit === "seconds") {
    const [scale, name] =
      SECONDS.find(([least]) => Math.abs(value) >= least * 0.9995) || SECONDS[4];
    return digits(value / scale) + name;
  }
  const { base, names } = SCALES[unit];
  let scaled = value;
  let step = 0;
  while (Math.abs(scaled) >= base * 0.9995 && step < names.length - 1) {
    scaled /= base;
    step += 1;
  }
  return digits(scaled) + names[step];
}

/**
 * The number at a path, formatted; "not known" where it is null. `tag` is `tspan` or `text` in SVG.
 * No number of the data is shown any other way.
 */
function number(path, unit, tag) {
  const value = at(path);
  const known = typeof value === "number";
  const attributes = {
    "data-path": path,
    "data-unit": unit,
    class: known ? "number" : "number unknown",
    value: known ? String(value) : "",
  };
  const shown = known ? format(value, unit) : "not known";
  if (tag) return svg(tag, attributes, shown);
  return el("data", { ...attributes, title: known ? String(value) : null }, shown);
}

/** The text at a path as it is; "none" or what `otherwise` says where it is null. */
function words(path, otherwise, tag) {
  const value = at(path);
  if (typeof value !== "string" || value === "") {
    return el("span", { class: "unknown" }, otherwise === undefined ? "none" : otherwise);
  }
  const attributes = { "data-text": path };
  return tag && tag.startsWith("svg:")
    ? svg(tag.slice(4), attributes, value)
    : el(tag || "span", attributes, value);
}

/** The text at a path, cut at its end where there is no room for so many letters. */
function shortened(path, most, tag) {
  const node = words(path, "", tag);
  const text = node.textContent;
  if (text.length > most) node.textContent = `${text.slice(0, Math.max(1, most - 1))}…`;
  return node;
}

/** The name of a file, with a line or none, at a path: its last two parts; the title says all of it. */
function fileName(path, otherwise) {
  const node = words(path, otherwise, "code");
  const parts = node.textContent.split("/");
  if (at(path) && parts.length > 3) {
    node.setAttribute("title", at(path));
    node.textContent = `…${parts
      .slice(-2)
      .map((part) => `/${part}`)
      .join("")}`;
  }
  return node;
}

/** All texts of a list, separated by commas. */
function list(path, otherwise, tag) {
  const values = at(path) || [];
  if (!values.length) return el("span", { class: "unknown" }, otherwise || "none");
  return values.map((_, index) => [index ? ", " : "", words(`${path}.${index}`, "", tag)]);
}

/** What bounds a kernel: a word with a colour. */
function bound(index) {
  const value = at(`kernels.${index}.cost.bound`);
  if (!value) return el("span", { class: "unknown" }, "not known");
  return el(
    "span",
    { class: `bound ${value === "compute" ? "compute" : "memory"}` },
    words(`kernels.${index}.cost.bound`),
  );
}

/** The path of the least time that a kernel can take: that of what bounds it. */
function leastTime(index) {
  const cost = data.kernels[index].cost;
  return `kernels.${index}.cost.${cost && cost.bound === "compute" ? "compute" : "memory"}_seconds`;
}

/** Terms and what they are, as pairs of a term and a value. */
function facts(pairs) {
  return el(
    "dl",
    { class: "facts" },
    pairs
      .filter(Boolean)
      .map(([term, ...values]) => el("div", {}, el("dt", {}, term), el("dd", {}, values))),
  );
}
