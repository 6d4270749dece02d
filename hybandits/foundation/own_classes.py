"""Classes of one's own, named ``package.module:Class``: importing them, saying what is wrong, and where they come from.

Nothing is imported unless a user names it. Where a class comes from is part of a record of results, so that they are
never mixed with those of another version of the class.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.metadata
import inspect
import os
import re
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import Any

from hybandits.foundation.checks import nearest
from hybandits.foundation.files import sha256

_PATH = re.compile(r"(?P<module>[^\s:=,\"'{}\[\]]+):(?P<name>[A-Za-z_][\w.]*)(?::(?P<rest>.*))?", re.DOTALL)

FORM = "package.module:Class"
"""How a class of one's own is named."""

_named: set[str] = set()
"""Modules that a user has named and that have been imported for it."""


def split_spec(spec: str) -> tuple[str, str]:
    """Split ``module:Class:setting=value`` or ``Name:setting=value`` into the name of the class and the settings' text.

    >>> split_spec("softmax:Softmax:temperature=0.1"), split_spec("HyLinUCB:ridge=2"), split_spec("softmax:Softmax")
    (('softmax:Softmax', 'temperature=0.1'), ('HyLinUCB', 'ridge=2'), ('softmax:Softmax', ''))
    """
    match = _PATH.fullmatch(spec)
    if match is not None:
        return f"{match['module']}:{match['name']}", match["rest"] or ""
    name, _, rest = spec.partition(":")
    return name, rest


def is_import_path(name: object) -> bool:
    """Whether a name is of the form ``package.module:Class``.

    >>> is_import_path("softmax:Softmax"), is_import_path("HyLinUCB")
    (True, False)
    """
    match = _PATH.fullmatch(name) if isinstance(name, str) else None
    return match is not None and match["rest"] is None


def class_name(name: str) -> str:
    """The name of a class without its module.

    >>> class_name("lab.softmax:Softmax"), class_name("HyLinUCB")
    ('Softmax', 'HyLinUCB')
    """
    return name.rpartition(":")[2] if is_import_path(name) else name


def _import_from_here() -> None:
    """Let modules in the current folder be imported, after all others: those of Python and of packages stay in use."""
    with contextlib.suppress(FileNotFoundError):  # the folder has been removed
        here = os.getcwd()
        if not any(os.path.abspath(place or here) == here for place in sys.path):
            sys.path.append(here)
    importlib.invalidate_caches()  # files may have been written a moment ago


def _must_not_be_hidden(module: ModuleType) -> None:
    """Raise if the current folder has a module of this name, but another one was found first."""
    top = module.__name__.partition(".")[0]
    found = getattr(sys.modules.get(top), "__file__", None)
    mine = [path for path in (Path(f"{top}.py"), Path(top, "__init__.py")) if path.is_file()]
    if mine and not any(found is not None and path.resolve() == Path(found).resolve() for path in mine):
        whose = "Python's own module" if top in sys.stdlib_module_names else f"another module ({found})"
        raise ValueError(f"{mine[0]} in the current folder has the name of {whose}, which is taken first: rename it")


def import_module(module: str) -> ModuleType:
    """Import a module that a user has named, from the current folder or wherever Python looks for modules.

    ValueError says what could not be imported and why.
    """
    if module.endswith(".py") or module.startswith(".") or "/" in module or "\\" in module:
        stem = module.removesuffix(".py").strip("./\\").replace("/", ".").replace("\\", ".")
        raise ValueError(
            f"{module!r} is not the name of a module: write it as import does, e.g. {stem}:Class, in the folder that "
            "has it"
        )
    if module == "__main__":
        raise ValueError("classes of a script cannot be named, as workers do not have it: put the class into a module")
    _import_from_here()
    try:
        imported = importlib.import_module(module)
    except ModuleNotFoundError as problem:
        missing = problem.name or module
        if module == missing or module.startswith(missing + "."):
            files = [path.stem for path in Path.cwd().glob("*.py")]
            raise ValueError(
                f"there is no module {missing!r}{nearest(missing, files)} in the current folder or among those "
                f"installed: name a class of your own as {FORM}"
            ) from None
        reason = f"{_place_in(module, problem)}it needs the module {missing!r}, which is not installed"
    except SyntaxError as problem:
        where = f"{Path(problem.filename).name}, line {problem.lineno}: " if problem.filename else ""
        reason = f"{where}{problem.msg}"
    except SystemExit:
        reason = "it ends Python when it is imported: put what it runs under if __name__ == '__main__':"
    except Exception as problem:  # whatever the module does when it is imported
        words = f": {problem}" if str(problem) else ""
        reason = f"{_place_in(module, problem)}{type(problem).__name__}{words}"
    else:
        _must_not_be_hidden(imported)
        _named.add(module)
        return imported
    raise ValueError(f"the module {module!r} cannot be imported ({reason}): correct it and try again")


def _place_in(module: str, problem: BaseException) -> str:
    """Where in the user's own files an error happened, e.g. "softmax.py, line 3: ", or nothing."""
    frames = [
        frame for frame in traceback.extract_tb(problem.__traceback__)
        if "importlib" not in frame.filename and frame.filename != __file__
    ]  # fmt: skip
    if not frames:
        return ""
    last = frames[-1]
    return f"{Path(last.filename).name}, line {last.lineno}: "


def import_class(name: str, kind: type, what: str) -> type:
    """Import a class that a user has named as ``package.module:Class``.

    Parameters
    ----------
    name : str
        Its name.
    kind : type
        The class must be a subclass of this one; `object` for any class.
    what : str
        What it is to be, for messages, e.g. "a policy".

    Returns
    -------
    type
        The class. It can be constructed: an abstract class is refused.

    Raises
    ------
    ValueError
        If it cannot be imported, is not such a class, or is abstract.

    Examples
    --------
    >>> import_class("collections:OrderedDict", dict, "a dict").__name__
    'OrderedDict'
    """
    module, _, qualified = name.partition(":")
    found: Any = import_module(module)
    for part in qualified.split("."):
        if not hasattr(found, part):
            fitting = [
                each for each, value in vars(found).items()
                if inspect.isclass(value) and issubclass(value, kind) and value is not kind
            ]  # fmt: skip
            has = f"it has {', '.join(sorted(fitting))}" if fitting else f"it has no class that is {what}"
            raise ValueError(f"the module {module!r} has no class {qualified!r}{nearest(part, fitting)}: {has}")
        found = getattr(found, part)
    if not inspect.isclass(found):
        raise ValueError(f"{name} is a {type(found).__name__}, not a class: name a class that is {what}")
    if not issubclass(found, kind):
        raise ValueError(
            f"{name} is not {what}: let the class be a subclass of {kind.__module__}.{kind.__name__}, or name another"
        )
    if inspect.isabstract(found):
        missing = ", ".join(sorted(getattr(found, "__abstractmethods__", ())))
        raise ValueError(f"{name} is abstract: define {missing} in it, or name a subclass that does")
    return found


def parameters_of(kind: type) -> dict[str, inspect.Parameter]:
    """The arguments of a constructor by name, with those of the constructor that it passes ``**kwargs`` on to."""
    starred = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    parameters: dict[str, inspect.Parameter] = {}
    for each in kind.__mro__:
        if "__init__" not in each.__dict__ or each is object:
            continue
        _, *arguments = inspect.signature(each.__dict__["__init__"]).parameters.values()
        for argument in arguments:
            if argument.kind not in starred:
                parameters.setdefault(argument.name, argument)
        if not any(argument.kind is argument.VAR_KEYWORD for argument in arguments):
            break
    return parameters


def check_settings(name: str, kind: type, settings: Mapping[str, Any], given: Iterable[str]) -> None:
    """Raise unless the constructor takes all settings and needs nothing beyond them and what is `given` anyway."""
    given = set(given)
    parameters = parameters_of(kind)
    known = [argument for argument in parameters if argument not in given]
    for wrong in sorted(set(settings) - set(known)):
        has = f"it has {', '.join(known)}" if known else "it has none"
        raise ValueError(f"{name} has no setting {wrong!r}{nearest(wrong, known)}: {has}")
    for argument in known:
        if parameters[argument].default is inspect.Parameter.empty and argument not in settings:
            raise ValueError(f"{name} needs the setting {argument!r}: give it, as in {name}:{argument}=VALUE")


def construct(name: str, kind: Callable[..., Any], arguments: Mapping[str, Any]) -> Any:
    """Call the constructor; of a class of one's own, an error of any kind becomes one that names the class."""
    if not is_import_path(name):
        return kind(**arguments)
    try:
        return kind(**arguments)
    except Exception as problem:  # whatever the class does when it is constructed
        given = ", ".join(f"{key}={value!r}" for key, value in arguments.items())
        words = f"{_place_in(name, problem)}{type(problem).__name__}: {problem}"
        raise ValueError(f"{name} cannot be constructed with {given} ({words})") from None


# ------------------------------------------------------------------ errors within a class


class OwnClassError(ValueError):
    """A class of one's own has failed, or does not keep what it promises; the message says which and where."""


def is_own(value: object) -> bool:
    """Whether an object is of a class that is not hybandits' own."""
    return type(value).__module__.partition(".")[0] != "hybandits"


def named(value: object) -> str:
    """The class of an object, as a user names it."""
    return f"{type(value).__module__}:{type(value).__qualname__}"


def failure_in_words(problem: BaseException) -> str:
    """Which class of one's own an error comes from, where, and what it says, on one line; nothing if it does not.

    An error comes from there if a function in a module that the user has named takes part in it. Otherwise, it may be
    that a method returned what it should not.
    """
    own = {name.partition(".")[0] for name in _named} - {"hybandits"}
    frames = list(traceback.walk_tb(problem.__traceback__))
    said = " ".join(str(problem).split())
    words = f"{type(problem).__name__}: {said}" if said else type(problem).__name__
    for frame, line in reversed(frames):
        module = str(frame.f_globals.get("__name__"))
        if module.partition(".")[0] in own:
            where = f"{Path(frame.f_code.co_filename).name}, line {line}"
            return f"{module}:{frame.f_code.co_qualname} failed ({where}: {words}): correct it"
    if not own or not frames or not isinstance(problem, AttributeError | LookupError | ArithmeticError):
        return ""
    frame, line = frames[-1]
    place = f"{Path(frame.f_code.co_filename).name}, line {line}: "
    return (
        f"a class of {', '.join(sorted(own))} may not return what it should ({place}{words}): docs/contract.md says "
        "what a policy returns, docs/adding-a-world.md what a world does"
    )


@contextlib.contextmanager
def naming_failures() -> Iterator[None]:
    """Turn an error within a class of one's own into one that names it, and that every engine hands back."""
    try:
        yield
    except (OwnClassError, MemoryError):
        raise
    except Exception as problem:  # whatever the class does
        if words := failure_in_words(problem):
            raise OwnClassError(words) from problem
        raise


class Named:
    """Work for an engine, within `naming_failures` there; workers learn which modules the user has named."""

    def __init__(self, work: Callable[[Any, Any], Any]) -> None:
        self._work, self._modules = work, tuple(_named)

    def __call__(self, task: Any, report: Any) -> Any:
        _named.update(self._modules)
        with naming_failures():
            return self._work(task, report)


# ------------------------------------------------------------------ where a class comes from


def origin_of(name: str) -> dict[str, str]:
    """Where a class that has been imported comes from: a distribution and its version, or the digest of its file.

    The file is the one that defines the class. Where the classes that it inherits from are in other files, or
    distributions, `bases` lists these, except hybandits and Python's own. Modules that are only imported are not looked
    at.

    >>> sorted(origin_of("hybandits.policies.ucb:HyLinUCB")) in (["distribution", "version"], ["file", "sha256"])
    True
    """
    module, _, qualified = name.partition(":")
    found: Any = importlib.import_module(module)
    for part in qualified.split("."):
        found = getattr(found, part)
    home = sys.modules.get(found.__module__) or importlib.import_module(module)
    origin = _origin_of_module(home)
    if origin is None:
        raise ValueError(
            f"{name} has no source file: put the class into a module, e.g. mine.py, and name it mine:Class"
        )
    bases = set()
    for each in found.__mro__[1:]:
        module_of_base = sys.modules.get(each.__module__)
        if each.__module__.partition(".")[0] in {"hybandits", *sys.stdlib_module_names} or module_of_base is None:
            continue
        base = _origin_of_module(module_of_base)
        if base is not None and base != origin:
            bases.add(" ".join(base.values()))
    return {**origin, "bases": ", ".join(sorted(bases))} if bases else origin


def _origin_of_module(home: ModuleType) -> dict[str, str] | None:
    source = getattr(home, "__file__", None)
    if source is None:
        return None
    path = Path(source).resolve()
    for distribution in _distributions().get(home.__name__.partition(".")[0], []):
        held = importlib.metadata.distribution(distribution)
        if any(Path(str(held.locate_file(file))).resolve() == path for file in held.files or ()):
            return {"distribution": distribution, "version": held.version}
    return {"file": path.name, "sha256": sha256(path)}


@lru_cache(maxsize=1)
def _distributions() -> Mapping[str, list[str]]:
    return importlib.metadata.packages_distributions()


def origin_in_words(origin: Mapping[str, str]) -> str:
    """Where a class comes from, for reading.

    >>> origin_in_words({"file": "softmax.py", "sha256": "ab12" * 16})
    'softmax.py with SHA-256 ab12ab12ab12..'
    """
    bases = re.sub(r"\b([0-9a-f]{12})[0-9a-f]{52}\b", r"\1..", origin.get("bases", ""))
    around = f" (bases in {bases})" if bases else ""
    if "distribution" in origin:
        return f"{origin['distribution']} {origin['version']}{around}"
    return f"{origin['file']} with SHA-256 {origin['sha256'][:12]}..{around}"


def changed_origin(name: str, recorded: Mapping[str, str], present: Mapping[str, str]) -> str:
    """What differs between the recorded class and the present one, in words; nothing if they are equal.

    >>> changed_origin("softmax:Softmax", {"file": "a.py", "sha256": "1" * 64}, {"file": "a.py", "sha256": "2" * 64})
    'the source of softmax:Softmax has changed: a.py had SHA-256 111111111111.. and has 222222222222.. now'
    """
    if dict(recorded) == dict(present):
        return ""
    same_bases = recorded.get("bases") == present.get("bases")
    if same_bases and "sha256" in recorded and recorded.get("file") == present.get("file"):
        return (
            f"the source of {name} has changed: {recorded['file']} had SHA-256 {recorded['sha256'][:12]}.. and has "
            f"{present['sha256'][:12]}.. now"
        )
    return f"{name} came from {origin_in_words(recorded)} and comes from {origin_in_words(present)} now"


def places() -> list[str]:
    """The folders outside Python's own from which modules are imported here, for workers; none if none was named."""
    if not _named:
        return []
    own = tuple(os.path.join(os.path.realpath(prefix), "") for prefix in {sys.prefix, sys.base_prefix})
    folders = [os.path.realpath(place or os.getcwd()) for place in sys.path if os.path.isdir(place or os.getcwd())]
    return list(dict.fromkeys(folder for folder in folders if not (folder + os.sep).startswith(own)))
