"""One HTML page that contains everything it shows."""

from bgd.report.page.render import SNIPPET, render_page

__all__ = ["SNIPPET", "render_page"]
