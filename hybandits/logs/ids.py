"""The ids of a log's arms: integers if every one of them is a whole number, otherwise strings.

A text is a whole number if it is written as Python writes one, so `100` is and `007`, `+7` and `id-7` are not: turned
into a number and back, an id must read as before. Formats that have types of their own (Parquet) decide by them.
"""

from __future__ import annotations

import re

Id = str | int

_WHOLE = re.compile(r"0|-?[1-9][0-9]{0,18}")
_POINT_ZERO = re.compile(r"(-?[0-9]+)\.0+")


def id_of(text: str) -> Id:
    """The id that a text stands for: an integer if it is a whole number of 64 bits, else the text itself.

    Examples
    --------
    >>> id_of("100"), id_of("007"), id_of("id-7"), id_of("9223372036854775808")
    (100, '007', 'id-7', '9223372036854775808')
    """
    if _WHOLE.fullmatch(text) and -(2**63) <= (number := int(text)) < 2**63:
        return number
    return text


def without_point(text: str) -> str:
    """The text of a whole float, such as pandas writes where a column has gaps, as that of an integer.

    Examples
    --------
    >>> without_point("1.0"), without_point("1.5"), without_point("shoe")
    ('1', '1.5', 'shoe')
    """
    whole = _POINT_ZERO.fullmatch(text)
    return whole[1] if whole else text
