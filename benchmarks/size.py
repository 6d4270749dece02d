"""Lines and files per folder of the checkout and of an earlier commit (`make size BASE=COMMIT`)."""

from __future__ import annotations

import ast
import io
import subprocess
import sys
import tarfile
import tokenize
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent
COUNTED = ("hybandits", "tests")


class Size(NamedTuple):
    """Files, and their lines by kind; a line of code with a comment behind it is code."""

    files: int = 0
    code: int = 0
    docstring: int = 0
    comment: int = 0
    blank: int = 0

    @property
    def lines(self) -> int:
        """Lines of every kind."""
        return sum(self) - self.files

    def plus(self, other: Size) -> Size:
        """The sum, field by field."""
        return Size(*(a + b for a, b in zip(self, other, strict=True)))


def size_of(source: str) -> Size:
    """Count the lines of one file.

    >>> size_of('"Docstring."\\n\\nx = 1  # code\\n# comment\\n')
    Size(files=1, code=1, docstring=1, comment=1, blank=1)
    """
    lines = source.splitlines()
    docstrings = {n for node in _docstrings(ast.parse(source)) for n in range(node.lineno, (node.end_lineno or 0) + 1)}
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    comments = {
        token.start[0]
        for token in tokens
        if token.type == tokenize.COMMENT and lines[token.start[0] - 1].lstrip().startswith("#")
    } - docstrings
    blank = sum(not line.strip() for n, line in enumerate(lines, 1) if n not in docstrings)
    code = len(lines) - len(docstrings) - len(comments) - blank
    return Size(1, code, len(docstrings), len(comments), blank)


def _docstrings(tree: ast.AST) -> Iterator[ast.expr]:
    """Strings that stand as statements: docstrings of modules, classes and functions, and of attributes."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield node.value


def by_folder(sources: Iterator[tuple[str, str]]) -> dict[str, Size]:
    """Sum up files by their first two folders."""
    sizes: defaultdict[str, Size] = defaultdict(Size)
    for path, source in sources:
        top, *rest = path.split("/")
        folder = f"{top}/{rest[0]}" if len(rest) > 1 else top
        sizes[folder] = sizes[folder].plus(size_of(source))
    return dict(sizes)


def checkout() -> Iterator[tuple[str, str]]:
    """Paths and contents of the files that git tracks, as they are in the checkout."""
    tracked = subprocess.run(
        ["git", "ls-files", *COUNTED], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.splitlines()
    for name in tracked:
        if name.endswith(".py") and (ROOT / name).exists():
            yield name, (ROOT / name).read_text()


def commit(ref: str) -> Iterator[tuple[str, str]]:
    """Paths and contents of the files in a commit."""
    archive = subprocess.run(["git", "archive", ref, *COUNTED], cwd=ROOT, capture_output=True, check=True).stdout
    with tarfile.open(fileobj=io.BytesIO(archive)) as files:
        for member in files:
            content = files.extractfile(member) if member.name.endswith(".py") else None
            if content is not None:
                yield member.name, content.read().decode()


def table(sizes: dict[str, Size]) -> str:
    """The table of one tree, with a sum for the package and one for the tests."""
    lines = [f"{'folder':<28}{'files':>7}{'code':>9}{'docstring':>11}{'comment':>9}{'blank':>8}{'lines':>9}"]
    for top in COUNTED:
        folders = {name: size for name, size in sorted(sizes.items()) if name.split("/")[0] == top}
        total = Size()
        for size in folders.values():
            total = total.plus(size)
        for name, size in [*folders.items(), (f"{top}, all", total)]:
            lines.append(
                f"{name:<28}{size.files:>7,}{size.code:>9,}{size.docstring:>11,}{size.comment:>9,}{size.blank:>8,}"
                f"{size.lines:>9,}"
            )
        lines.append("")
    return "\n".join(lines)


def previous_tag() -> str | None:
    """The newest tag before this commit, if there is one."""
    answer = subprocess.run(["git", "describe", "--tags", "--abbrev=0"], cwd=ROOT, capture_output=True, text=True)
    return answer.stdout.strip() or None


def main(arguments: list[str]) -> int:
    """Print the sizes of the checkout, and of the commit that is named or else of the previous tag."""
    print(table(by_folder(checkout())))
    ref = arguments[0] if arguments else previous_tag()
    if ref is None:
        print("There is no tag to compare with: name a commit, e.g. make size BASE=HEAD~10")
        return 0
    try:
        earlier = by_folder(commit(ref))
    except subprocess.CalledProcessError as problem:
        print(f"size: {problem.stderr.decode().strip()}: name a commit that git knows", file=sys.stderr)
        return 2
    print(f"{ref}:\n\n{table(earlier)}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
