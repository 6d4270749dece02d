"""The manifest of a results folder: which records and units it holds, and what may be added to it."""

from __future__ import annotations

import json
import platform
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

from hybandits.experiments.record import Experiment, ResultsError, Unit
from hybandits.foundation.files import write_atomically
from hybandits.foundation.version import __version__

MANIFEST = "manifest.json"

FORMAT = 1
"""Version of the layout of manifests and units."""

REMEDY = "give another folder, or remove this one"
"""What to do about results that must not be mixed with others."""

ABOUT = ("scale", "seed")
"""What a folder may say of all its records; a later run must say the same."""


def read_manifest(path: Path) -> dict[str, Any]:
    """Read a folder's manifest; ResultsError if there is none of this format."""
    if not path.parent.is_dir():
        raise ResultsError(f"{path.parent} is not a folder with results: run hybandits reproduce or simulate first")
    try:
        manifest = json.loads(path.read_text())
        layout = manifest["format"]
    except FileNotFoundError:
        remedy = "run hybandits reproduce or simulate first"
        raise ResultsError(f"{path.parent} holds no results (no {MANIFEST}): {remedy}") from None
    except (OSError, ValueError, KeyError, TypeError) as problem:
        raise ResultsError(f"{path} is damaged or was not written by hybandits ({problem}): remove it") from None
    if layout != FORMAT:
        raise ResultsError(
            f"{path} has results format {layout}, but this version reads {FORMAT}: use hybandits "
            f"{manifest.get('version')}"
        )
    parts = {"version": str, "versions": dict, "experiments": list, "units": dict, "commands": list}
    for name, kind in parts.items():
        optional = name == "commands"  # older folders do not have it
        if not (optional and name not in manifest) and not isinstance(manifest.get(name), kind):
            raise ResultsError(f"{path} is damaged ({name} is not a {kind.__name__}): remove it")
    return manifest  # type: ignore[no-any-return]


def joined_manifest(
    folder: Path, records: list[Experiment], about: Mapping[str, Any], command: str | None
) -> dict[str, Any]:
    """The folder's manifest with these records added.

    ResultsError if the folder has results of the same experiments with other records, or of another version, scale or
    seed: those are never mixed.
    """
    path = folder / MANIFEST
    known: dict[str, Any] = {}
    kept: dict[str, Any] = {}
    versions = {"python": platform.python_version(), **{n: version(n) for n in ("numpy", "numba", "pyarrow")}}
    if path.exists():
        known = read_manifest(path)
        if known["version"] != __version__:
            raise ResultsError(
                f"{folder} holds results of hybandits {known['version']}, but this is hybandits {__version__}: {REMEDY}"
            )
        # A record without saved units may be replaced.
        kept = {
            f"{e['name']}/{e['protocol']}": e
            for e in known["experiments"]
            if any((folder / "units" / e["name"] / e["protocol"]).glob("*.parquet"))
        }
    adds = any(not (folder / unit.path).exists() for record in records for unit in record.units())
    commands = _commands(known if kept else None, command, adds=adds)
    if kept:
        for name in ("numpy", "numba"):  # they decide the last digits
            earlier = known["versions"].get(name)
            if earlier != versions[name]:
                raise ResultsError(
                    f"{folder} holds results computed with {name} {earlier}, but {name} {versions[name]} is installed: "
                    f"{REMEDY}"
                )
        for name, value in about.items():
            if known.get(name, value) != value:
                raise ResultsError(f"{folder} holds results with {name} {known[name]}, this run has {value}: {REMEDY}")
    for record in records:
        there = kept.setdefault(record.key, record.plain())
        if there != record.plain():
            words = difference({"experiment": there}, next(record.units()))
            raise ResultsError(f"{folder} holds results of a different {record.key}{words}: {REMEDY}")
    return {
        "format": FORMAT,
        "version": __version__,
        "versions": known["versions"] if kept and known else versions,
        **{name: value for name, value in known.items() if name in ABOUT},
        **about,
        **commands,
        "experiments": [kept[key] for key in sorted(kept)],
        "units": {path: digest for path, digest in known.get("units", {}).items() if (folder / path).exists()},
    }


def _commands(known: Mapping[str, Any] | None, command: str | None, *, adds: bool) -> dict[str, list[str]]:
    """The commands that filled the folder, each once, under their key of the manifest.

    Left out if results are there (`known` is their manifest) without the command that gave them, or if this run adds
    results without one: a list of the others alone would mislead.
    """
    if (known is not None and "commands" not in known) or (command is None and adds):
        return {}
    before = [] if known is None else known["commands"]
    commands = list(dict.fromkeys([*before, *([] if command is None else [command])]))
    return {"commands": commands} if commands else {}


def difference(record: Mapping[str, Any], unit: Unit) -> str:
    """Which fields of the record in a folder differ from those of a unit, in words within parentheses."""
    wanted, there = unit.plain()["experiment"], record.get("experiment", {})
    words = []
    for name in (name for name in {**there, **wanted} if wanted.get(name) != there.get(name)):
        if name == "seeds":
            before, now = len(there.get(name, [])), len(wanted[name])
            words.append("different seeds" if before == now else f"environments: {before} there and {now} here")
        elif isinstance(wanted.get(name), str | int | float) or name == "arms":
            words.append(f"{WORDS.get(name, name)} is {there.get(name)!r} there and {wanted[name]!r} here")
        elif name == "world_settings":
            words.append(f"the world has {there.get(name, {})} there and {wanted.get(name, {})} here")
        elif name == "policies":
            words.append("different policies or settings")
        elif name == "origins":
            old, new = there.get(name, {}), wanted.get(name, {})
            words += [f"the source of {each} has changed" for each in new if old.get(each) != new[each]]
        elif name == "log":
            old, new = there.get(name) or {}, wanted.get(name) or {}
            changed = [key for key in {**old, **new} if old.get(key) != new.get(key)]
            words.append(f"a different log ({', '.join(changed)})")
    return f" ({', '.join(filter(None, words)) or 'in other fields'})"


WORDS = {"horizon": "the number of rounds"}
"""Fields of a record that users know by another name."""


def write_manifest(folder: Path, manifest: dict[str, Any]) -> None:
    """Put the manifest in its place, with its units sorted."""
    manifest["units"] = dict(sorted(manifest["units"].items()))
    text = json.dumps(manifest, indent=1) + "\n"
    write_atomically(folder / MANIFEST, lambda name: Path(name).write_text(text))
