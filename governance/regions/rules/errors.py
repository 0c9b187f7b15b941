"""Errors of the regional profiles. A region without a profile is a denial; a broken profile file stops the program."""

from __future__ import annotations

from collections.abc import Sequence


class RegionError(LookupError):
    """No profile applies, so nothing may run: the reason code of every such denial is `region_unset`."""

    code = "region_unset"


class RegionUnsetError(RegionError):
    """No region of record was named."""

    def __init__(self) -> None:
        super().__init__("No region of record is set.")


class UnknownRegionError(RegionError):
    """A region was named for which there is no profile. The message does not repeat it."""

    def __init__(self) -> None:
        super().__init__("There is no profile for the named region.")


class ProfilesInvalidError(ValueError):
    """The profile file is broken; `problems` lists everything that is wrong with it."""

    code = "region_profiles_invalid"

    def __init__(self, problems: Sequence[str]) -> None:
        self.problems = tuple(problems)
        super().__init__("The regional profiles are invalid: " + "; ".join(self.problems))
