"""HTML pages that contain everything they show."""

from bgd.report.page.render import SNIPPET, render_page, render_pages

__all__ = ["SNIPPET", "render_page", "render_pages"]
