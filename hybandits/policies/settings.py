"""The settings of a policy: the arguments of its constructor, as `repr` shows them and as a saved file holds them."""

from __future__ import annotations

from typing import Any, ClassVar, Self

from hybandits.foundation.checks import KeywordsOnly, parameters_of


class WithSettings(KeywordsOnly):
    """A class whose settings are the arguments of its constructor, each kept in an attribute of the same name."""

    _not_settings: ClassVar[tuple[str, ...]] = ("seed",)
    """Arguments of the constructor that the policy does not keep: the random state stands for the seed."""

    @classmethod
    def _setting_names(cls) -> list[str]:
        """The names of the constructor's arguments, with those of the constructor that it passes ``**kwargs`` on to."""
        return [name for name in parameters_of(cls) if name not in cls._not_settings]

    def _settings(self) -> dict[str, Any]:
        """The constructor's arguments with their present values, read from the attributes of the same names."""
        missing = [name for name in self._setting_names() if not hasattr(self, name)]
        if missing:
            raise AttributeError(
                f"{type(self).__name__} has no attribute {missing[0]!r}, so its settings cannot be shown or saved: "
                f"keep each argument of the constructor in an attribute of the same name, as in self.{missing[0]} = ..."
            )
        return {name: getattr(self, name) for name in self._setting_names()}

    def _config(self) -> dict[str, Any]:
        """The settings as a saved file holds them, but for a wrapped policy, which is saved as a part of the file."""
        settings = self._settings().items()
        return {name: self._plain(name, value) for name, value in settings if not isinstance(value, WithSettings)}

    def _plain(self, name: str, value: Any) -> Any:
        """Turn a setting into a value that JSON can hold; override it for settings that are not such values."""
        return value

    @classmethod
    def _from_config(cls, config: dict[str, Any]) -> Self:
        """Make a policy from the settings of a saved file, the inverse of `_config`."""
        return cls(**config)
