"""Docstrings as the site shows them: doctests become blocks of code, roles of Sphinx become names."""

import re

import griffe

ROLE = re.compile(r":(?:class|func|meth|mod|data|attr):`~?([^`]+)`")
DOCTEST = re.compile(r"(?m)^( *)>>> .*\n?(?:(?!\s*$).+\n?)*")


class Docstrings(griffe.Extension):
    """Rewrites each docstring before it is parsed."""

    def on_object(self, *, obj, **_):
        """Of every module, class, function and attribute."""
        if obj.docstring is not None and not obj.is_alias:
            obj.docstring.value = as_markdown(obj.docstring.value)


def as_markdown(text):
    """Fences around doctests; names without their module.

    >>> as_markdown("See :class:`bgd.BGD`.")
    'See `BGD`.'
    """
    text = ROLE.sub(lambda found: f"`{found[1].rpartition('.')[2]}`", text).replace("``", "`")
    return DOCTEST.sub(lambda found: f"{found[1]}```pycon\n{found[0].rstrip()}\n{found[1]}```\n", text)
