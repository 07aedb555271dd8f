"""The report's page: data, view and program in one HTML text that needs no network."""

from __future__ import annotations

import base64
import gzip
import hashlib
import html
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

VIEW = Path(__file__).parent / "view"
SCRIPTS = (
    "dom.js",
    "figures.js",
    "links.js",
    "syntax.js",
    "head.js",
    "layout.js",
    "graph.js",
    "columns.js",
    "texts.js",
    "schedule.js",
    "lanes.js",
    "accesses.js",
    "plot.js",
    "roofline.js",
    "timeline.js",
    "memory.js",
    "flame.js",
    "decisions.js",
    "main.js",
)
"""The parts of the page's program in order; they share one function scope."""


def page(data: Mapping[str, Any]) -> str:
    """The HTML text of a report, whose data is an object of JSON in the form of version 1.

    The data travels compressed, so no text in it is ever read as markup.
    Raises ValueError for numbers that JSON does not have (NaN, infinities).
    """
    style = _text("page.css")
    program = "\n".join(_text(name) for name in SCRIPTS)
    script = f'"use strict";\n(function () {{\n{program}\n}})();\n'
    parts = {
        "POLICY": _policy(style, script),
        "TITLE": html.escape(f"{data['program']}: deplo"),
        "STYLE": style,
        "DATA": _packed(data),
        "SCRIPT": script,
    }
    return re.sub(r"@([A-Z]+)@", lambda match: parts[match[1]], _text("page.html"))


def _text(name: str) -> str:
    return (VIEW / name).read_text(encoding="utf-8")


def _packed(data: Mapping[str, Any]) -> str:
    """JSON, by gzip, in base64: equal data gives equal text."""
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    return base64.b64encode(gzip.compress(text.encode(), mtime=0)).decode()


def _policy(style: str, script: str) -> str:
    """The content security policy: this style and this script, and nothing from anywhere."""
    return "; ".join(
        (
            "default-src 'none'",
            f"style-src '{_digest(style)}'",
            f"script-src '{_digest(script)}'",
            "img-src data:",
            "base-uri 'none'",
            "form-action 'none'",
        )
    )


def _digest(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
