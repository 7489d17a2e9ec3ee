"""Open pages in a headless Chromium."""

from __future__ import annotations

import html
import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

CHROMIUM = next(
    (found for name in ("chromium", "chromium-browser", "google-chrome")
     if (found := shutil.which(name))), None,
)  # fmt: skip

#: The path of Chromium, which `.ci/run` installs if it can.
needs_chromium = pytest.mark.skipif(
    CHROMIUM is None, reason="no chromium on this machine (apt-get install chromium)"
)


#: The script of axe-core, which finds accessibility problems of a page; not in the repository.
AXE = os.environ.get("AXE_CORE")
needs_axe = pytest.mark.skipif(
    AXE is None, reason="AXE_CORE names no axe.min.js (npm install axe-core)"
)


def violations(page: Path, width: int, dark: bool, first: str = "") -> list[list[str]]:
    """Return what axe-core finds on a page: impact and rule; `first`: a script to run before."""
    assert AXE is not None
    text = re.sub(r"<meta http-equiv[^>]*>", "", page.read_text("utf-8"), count=1)
    script = Path(AXE).read_text("utf-8")
    probe = f"""<script>{script}</script><script>addEventListener("load", async () => {{
      {first};
      const found = await axe.run(document, {{resultTypes: ["violations"]}});
      document.title = JSON.stringify(found.violations.map((own) => [own.impact, own.id]));
    }})</script></body>"""
    probed = page.with_name(f"{page.stem}-axe.html")
    probed.write_text("".join(text.rsplit("</body>", 1)[:1]) + probe, "utf-8")
    dom, _ = browse(
        probed, f"--window-size={width},900", "--virtual-time-budget=60000", "--dump-dom",
        f"--blink-settings=preferredColorScheme={0 if dark else 1}",
    )  # fmt: skip
    title = re.search("<title>(.*?)</title>", dom, re.DOTALL)
    assert title is not None
    found: list[list[str]] = json.loads(html.unescape(title[1]))
    return found


def browse(page: Path, *options: str, at: str = "") -> tuple[str, str]:
    """Return the output of Chromium with these options: stdout, and the console of the page.

    `at`: the part after the page's address, such as "#items".
    """
    assert CHROMIUM is not None
    done = subprocess.run(
        [
            CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
            "--enable-logging=stderr", "--log-level=0", "--disable-background-networking",
            "--host-resolver-rules=MAP * ~NOTFOUND", f"--user-data-dir={page.parent / 'profile'}",
            *options, page.as_uri() + at,
        ],
        capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip
    return done.stdout, "\n".join(re.findall(r".*CONSOLE.*", done.stderr))


def screenshot(page: Path, dark: bool, at: str = "") -> Path:
    """Return a picture of the top of a page, in dark or light colours."""
    path = page.with_name(f"{page.stem}-{'dark' if dark else 'light'}.png")
    browse(
        page, "--window-size=1000,1400", f"--screenshot={path}",
        f"--blink-settings=preferredColorScheme={0 if dark else 1}", at=at,
    )  # fmt: skip
    return path


def measured(page: Path, script: str, width: int, at: str = "") -> Any:
    """Return the result of a script on a page in a window of this width, without the page's
    security policy.
    """
    text = re.sub(r"<meta http-equiv[^>]*>", "", page.read_text("utf-8"), count=1)
    text = text.replace(' loading="lazy"', "")
    probe = "<script>addEventListener('load', () => { document.title = JSON.stringify("
    probe += f"{script}); }})</script></body>"
    probed = page.with_name(f"{page.stem}-probed.html")
    probed.write_text(text.replace("</body>", probe), "utf-8")
    dom, _ = browse(probed, f"--window-size={width},900", "--dump-dom", at=at)
    title = re.search("<title>(.*?)</title>", dom, re.DOTALL)
    assert title is not None
    return json.loads(html.unescape(title[1]))


def measured_in_frames(*frames: tuple[Path, str, int]) -> list[Any]:
    """Return the result of each script on its page in a frame of its width, all in one browser:
    a start costs more than a page, and a headless window is at least 500 pixels wide.
    """
    parts = []
    for page, script, width in frames:
        text = re.sub(r"<meta http-equiv[^>]*>", "", page.read_text("utf-8"), count=1)
        text = text.replace(' loading="lazy"', "")
        probe = "<script>addEventListener('load', () => { document.title = JSON.stringify("
        probe += f"{script}); }})</script></body>"
        parts.append(
            f'<iframe style="width: {width}px; height: 900px; border: 0" srcdoc="'
            f'{html.escape(text.replace("</body>", probe))}"></iframe>'
        )
    path = frames[0][0].with_name(f"{frames[0][0].stem}-frames.html")
    path.write_text(
        f"<title></title>{''.join(parts)}<script>addEventListener('load', () => {{"
        "document.title = JSON.stringify([...document.querySelectorAll('iframe')]"
        ".map((own) => JSON.parse(own.contentDocument.title))); })</script>",
        "utf-8",
    )
    dom, _ = browse(path, "--window-size=1500,900", "--dump-dom")
    title = re.search("<title>(.*?)</title>", dom, re.DOTALL)
    assert title is not None
    found: list[Any] = json.loads(html.unescape(title[1]))
    return found
