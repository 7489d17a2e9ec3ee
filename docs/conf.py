"""How Sphinx makes the site of the documentation: `sphinx-build -W docs build/site`."""

from __future__ import annotations

from typing import Any

from docutils.nodes import SkipNode
from latex2mathml.converter import convert

from uqeval.glossary import families, family_label, label
from uqeval.version import VERSION

project = "uqeval"
author = "the uqeval developers"
release = version = VERSION
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx_copybutton"]
myst_enable_extensions = ["colon_fence", "dollarmath"]
html_math_renderer = "mathml"
#: So many levels of headings can be the target of a link, as on the pages of the repository.
myst_heading_anchors = 4
html_theme = "furo"
html_title = f"uqeval {VERSION}"
#: Single backticks in docstrings are code.
default_role = "code"
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
#: Arguments of prompts and tables are not part of what is copied.
copybutton_exclude = ".linenos, .gp, .go"


#: Where the README's links lead from this folder.
_LINKS = {
    "](examples/": "](../examples/", "](LICENSE)": "](../LICENSE)",
    "](CITATION.cff)": "](../CITATION.cff)", "](CHANGELOG.md)": "](changelog.md)",
    "](CONTRIBUTING.md)": "](contributing.md)", "](CODE_OF_CONDUCT.md)": "](conduct.md)",
}  # fmt: skip


def _from_docs(app: Any, path: Any, page: str, content: list[str]) -> None:
    """Let the links of files that lie beside this folder lead to the same places."""
    if str(path).endswith(("README.md", "CHANGELOG.md", "CONTRIBUTING.md")):
        for link, from_here in _LINKS.items():
            content[0] = content[0].replace(link, from_here)


def _scores(app: Any, page: str, content: list[str]) -> None:
    """Put the table of headline scores into the glossary."""
    rows = sorted(
        (
            (label(name, metric.field), family_label(name), f"`{metric.id}`", metric.meaning)
            for name, family in families().items()
            for metric in family.metrics
            if metric.headline
        ),
        key=lambda row: row[0].lower(),
    )
    heads = [("score", "metric", "key", "meaning"), ("---",) * 4]
    lines = [" | ".join(cell.replace("|", "\\|") for cell in row) for row in [*heads, *rows]]
    table = "\n".join(f"| {line} |" for line in lines)
    if page == "glossary":
        content[0] = content[0].replace("<!-- scores -->", table)


def _formula(writer: Any, node: Any) -> None:
    """Write a formula as MathML: browsers show it without a script of another server."""
    block = node.tagname == "math_block"
    formula = convert(node.astext().strip(), display="block" if block else "inline")
    writer.body.append(f'<div style="padding: 0.6em 0">{formula}</div>' if block else formula)
    raise SkipNode


def setup(app: Any) -> None:
    """Called by Sphinx."""
    app.connect("include-read", _from_docs)
    app.connect("source-read", _scores)
    app.add_html_math_renderer("mathml", (_formula, None), (_formula, None))
