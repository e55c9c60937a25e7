"""The made-up study of the page, for the figures on it."""

from tests.report.render.html.conftest import fabricate

__all__ = ["fabricate"]
