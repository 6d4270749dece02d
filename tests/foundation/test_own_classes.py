"""Classes of one's own: names, what cannot be imported and why, and where a class comes from."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from hybandits.foundation import own_classes
from hybandits.foundation.files import sha256
from hybandits.foundation.own_classes import (
    changed_origin,
    check_settings,
    class_name,
    construct,
    import_class,
    import_module,
    is_import_path,
    origin_in_words,
    origin_of,
    parameters_of,
    places,
    split_spec,
)


@pytest.mark.parametrize(
    ("spec", "parts"),
    [
        ("HyLinUCB", ("HyLinUCB", "")),
        ("HyLinUCB:ridge=2", ("HyLinUCB", "ridge=2")),
        ('EpsilonGreedy:policy="a:B:c=1",epsilon=0.1', ("EpsilonGreedy", 'policy="a:B:c=1",epsilon=0.1')),
        ("softmax:Softmax", ("softmax:Softmax", "")),
        ("lab.own.softmax:Softmax.Warm:t=0.1,x=2", ("lab.own.softmax:Softmax.Warm", "t=0.1,x=2")),
        ("softmax.py:Softmax", ("softmax.py:Softmax", "")),
    ],
)
def test_a_name_and_its_settings(spec: str, parts: tuple[str, str]) -> None:
    assert split_spec(spec) == parts


def test_names() -> None:
    assert is_import_path("a.b:C")
    assert not any(map(is_import_path, ["C", "C:x=1", "a:C:x=1", 3, None]))
    assert (class_name("a.b:C"), class_name("C")) == ("C", "C")


@pytest.mark.parametrize(
    ("text", "name", "message"),
    [
        ("", "softmx:Softmax", r"there is no module 'softmx' \(did you mean mine\?\)|there is no module 'softmx'"),
        (
            "",
            "mne:Mine",
            r"there is no module 'mne' \(did you mean mine\?\) in the current folder .* package\.module:Class",
        ),
        ("", "mine.py:Mine", r"'mine\.py' is not the name of a module: write it as import does, e\.g\. mine:Class"),
        ("", "./lab/mine.py:Mine", r"write it as import does, e\.g\. lab\.mine:Class"),
        (
            "import nowhere_at_all",
            "mine:Mine",
            r"mine\.py, line 1: it needs the module 'nowhere_at_all', which is not inst",
        ),
        ("", "__main__:Mine", r"classes of a script cannot be named, .*put the class into a module"),
        ("x = 1\nclass Mine(", "mine:Mine", r"'mine' cannot be imported \(mine\.py, line 2: "),
        ("x = 1\ny = x / 0", "mine:Mine", r"\(mine\.py, line 2: ZeroDivisionError: division by zero\): correct it"),
        ("raise SystemExit(3)", "mine:Mine", "it ends Python when it is imported"),
        ("class Mine(dict): pass", "mine:Mien", r"has no class 'Mien' \(did you mean Mine\?\): it has Mine"),
        ("x = 1", "mine:Mine", "the module 'mine' has no class 'Mine': it has no class that is a dict of mine"),
        ("def Mine(): pass", "mine:Mine", "mine:Mine is a function, not a class: name a class that is a dict of mine"),
        (
            "class Mine: pass",
            "mine:Mine",
            r"mine:Mine is not a dict of mine: let the class be a subclass of builtins\.dict",
        ),
        (
            "from abc import ABC, abstractmethod\nclass Mine(dict, ABC):\n @abstractmethod\n def f(self): ...",
            "mine:Mine",
            "mine:Mine is abstract: define f in it",
        ),
    ],
)
def test_what_cannot_be_imported_is_said_with_the_reason(text: str, name: str, message: str, own_folder: Path) -> None:
    (own_folder / "mine.py").write_text(text)
    with pytest.raises(ValueError, match=message):
        import_class(name, dict, "a dict of mine")


def test_the_current_folder_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [place for place in sys.path if place])
    (tmp_path / "found_here.py").write_text("class Mine(dict): pass\n")
    monkeypatch.chdir(tmp_path)
    try:
        assert import_class("found_here:Mine", dict, "a dict").__name__ == "Mine"
        assert sys.path[-1] == os.getcwd()
        assert str(tmp_path) in places()
        assert not any(place.startswith(sys.prefix) for place in places())
    finally:
        del sys.modules["found_here"]


def test_workers_are_told_of_folders_only_if_a_module_was_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(own_classes, "_named", set())
    assert places() == []


def test_the_origin_is_a_version_or_the_digest_of_the_file(own_folder: Path) -> None:
    (own_folder / "mine.py").write_text("class Mine(dict):\n    class Inner(dict): pass\n")
    import_module("mine")
    digest = sha256(own_folder / "mine.py")
    assert origin_of("mine:Mine") == origin_of("mine:Mine.Inner") == {"file": "mine.py", "sha256": digest}
    installed = origin_of("pytest:Item")
    assert installed["distribution"] == "pytest"
    assert origin_in_words(installed).startswith("pytest ")


def test_the_files_of_base_classes_are_part_of_the_origin(own_folder: Path) -> None:
    (own_folder / "base.py").write_text("from hybandits import Greedy\n\n\nclass Base(Greedy): pass\n")
    (own_folder / "mine.py").write_text("from base import Base\n\n\nclass Mine(Base): pass\n")
    import_module("mine")
    before = origin_of("mine:Mine")
    digests = [sha256(own_folder / name) for name in ("mine.py", "base.py")]
    assert before == {"file": "mine.py", "sha256": digests[0], "bases": f"base.py {digests[1]}"}
    (own_folder / "base.py").write_text("from hybandits import Greedy\n\n\nclass Base(Greedy): x = 1\n")
    now = sha256(own_folder / "base.py")
    assert changed_origin("mine:Mine", before, origin_of("mine:Mine")) == (
        f"mine:Mine came from mine.py with SHA-256 {digests[0][:12]}.. (bases in base.py {digests[1][:12]}..) and "
        f"comes from mine.py with SHA-256 {digests[0][:12]}.. (bases in base.py {now[:12]}..) now"
    )


@pytest.mark.parametrize(("name", "whose"), [("calendar", "Python's own module"), ("typer", "another module")])
def test_modules_of_python_and_of_packages_are_found_first_and_a_hidden_one_is_named(
    name: str, whose: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [place for place in sys.path if place])
    monkeypatch.setattr(own_classes, "_named", set())
    (tmp_path / f"{name}.py").write_text("raise RuntimeError('hidden')")
    (tmp_path / "beside.py").write_text(f"import {name}\n\n\nclass Mine(dict): pass\n")
    try:
        import_module("beside")
    finally:
        sys.modules.pop("beside", None)
    with pytest.raises(ValueError, match=rf"{name}\.py in the current folder has the name of {whose}.*: rename it"):
        import_module(name)


def test_a_class_without_a_file_has_no_origin() -> None:
    with pytest.raises(ValueError, match="has no source file: put the class into a module"):
        origin_of("builtins:dict")


def test_changes_are_told_in_words() -> None:
    file, other = {"file": "a.py", "sha256": "1" * 64}, {"file": "b.py", "sha256": "2" * 64}
    version = {"distribution": "lab", "version": "1.0"}
    assert changed_origin("a:A", file, dict(file)) == ""
    assert changed_origin("a:A", file, other) == (
        "a:A came from a.py with SHA-256 111111111111.. and comes from b.py with SHA-256 222222222222.. now"
    )
    assert (
        changed_origin("a:A", version, {**version, "version": "1.1"})
        == "a:A came from lab 1.0 and comes from lab 1.1 now"
    )


class Base:
    def __init__(self, *, ridge: float, seed: int = 0) -> None: ...


class Derived(Base):
    def __init__(self, *, scale: float = 1.0, **others: float) -> None: ...


def test_arguments_are_followed_through_keywords() -> None:
    assert list(parameters_of(Derived)) == ["scale", "ridge", "seed"]
    assert parameters_of(object) == {}
    check_settings("D", Derived, {"ridge": 1.0}, ["seed"])
    with pytest.raises(ValueError, match=r"D has no setting 'rigde' \(did you mean ridge\?\): it has scale, ridge"):
        check_settings("D", Derived, {"rigde": 1.0}, ["seed"])
    with pytest.raises(ValueError, match=r"D needs the setting 'ridge': give it, as in D:ridge=VALUE"):
        check_settings("D", Derived, {}, ["seed"])
    with pytest.raises(ValueError, match="O has no setting 'a': it has none"):
        check_settings("O", object, {"a": 1}, [])


def test_errors_of_a_constructor_name_the_class() -> None:
    def fails(**arguments: int) -> None:
        raise KeyError("colour")

    with pytest.raises(ValueError, match=r"mine:Mine cannot be constructed with d1=2 .*KeyError: 'colour'"):
        construct("mine:Mine", fails, {"d1": 2})
    with pytest.raises(KeyError):
        construct("Mine", fails, {})
