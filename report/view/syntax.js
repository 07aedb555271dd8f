// Colours of code: a small tokenizer, the same for all languages but for their words.

const WORDS = {
  cuda:
    "asm auto bool break case char const constexpr continue do double else enum extern false " +
    "float for if inline int long namespace restrict return short signed sizeof static struct " +
    "switch template true typedef typename union unsigned using void volatile while __global__ " +
    "__device__ __shared__ __restrict__ __launch_bounds__ __align__",
  python:
    "and as assert async await break class continue def del elif else except False finally for " +
    "from global if import in is lambda None nonlocal not or pass raise return True try while " +
    "with yield",
  mlir: "true false to step else iter_args blocks threads over",
};

const TYPES =
  "tensor|memref|vector|index|i1|i8|i16|i32|i64|ui8|bf16|f16|f32|f64|float[234]?|int[234]?|half2?";
const TOKENS = {
  string: "\"(?:[^\"\\\\]|\\\\.)*\"?|'(?:[^'\\\\]|\\\\.)*'?",
  name: "[%@^!#][A-Za-z_0-9$.]+",
  type: `\\b(?:tensor|memref|vector)<[^>]*>|\\b(?:${TYPES})\\b`,
  number:
    "(?<![A-Za-z_.])0x[0-9a-fA-F]+\\b|" +
    "(?<![A-Za-z_0-9])\\d+(?:\\.\\d+)?(?:[eE][-+]?\\d+)?[fuUlL]*\\b",
  word: "[A-Za-z_][A-Za-z_0-9.]*",
};

const patterns = {};

/** The pattern of a language. `;` begins a comment in assembly alone, `#` in Python alone. */
function patternOf(language) {
  if (!patterns[language]) {
    const comment =
      { python: "#.*", asm: "[;#].*", sass: "(?:\\/\\/|;).*", llvm: ";.*" }[language] || "\\/\\/.*";
    const all = { comment, ...TOKENS };
    const groups = Object.entries(all).map(([kind, pattern]) => `(?<${kind}>${pattern})`);
    patterns[language] = new RegExp(groups.join("|"), "g");
  }
  return patterns[language];
}

const wordsOf = Object.fromEntries(
  Object.entries(WORDS).map(([language, text]) => [language, new Set(text.split(" "))]),
);

function classOf(kind, text, language) {
  if (kind !== "word") return kind;
  const own = wordsOf[language];
  if (own && own.has(text)) return "keyword";
  // Operations of MLIR and instructions of machines are the words with a dot, or in capitals.
  if (language === "mlir" && /^[a-z_0-9]+\.[a-z_0-9.]+$/.test(text)) return "keyword";
  if (language === "sass" && /^[A-Z][A-Z0-9_.]+$/.test(text)) return "keyword";
  return null;
}

/** Longer lines than this are shown without colours. */
const LONGEST = 600;

/** A line as text nodes and coloured spans. */
function coloured(text, language) {
  if (text.length > LONGEST) return [text];
  const parts = [];
  let end = 0;
  for (const match of text.matchAll(patternOf(language))) {
    const kind = Object.keys(match.groups).find((name) => match.groups[name] !== undefined);
    const name = classOf(kind, match[0], language);
    if (!name) continue;
    if (match.index > end) parts.push(text.slice(end, match.index));
    parts.push(el("span", { class: `t-${name}` }, match[0]));
    end = match.index + match[0].length;
  }
  if (end < text.length) parts.push(text.slice(end));
  return parts;
}
