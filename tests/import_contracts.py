"""The import contract of rooms, for import-linter (`contract_types` in .importlinter).

A module is in a room (`attempts.reviews`) and in a ring (`services`). It may import lower rings of any room, its own
ring within its room, and its own ring in rooms that are listed below its own. So there can be no cycle. A module that
has no room or no ring breaks the contract: nothing is left out.
"""

from dataclasses import dataclass
from typing import Any

from grimp import ImportGraph
from importlinter import Contract, ContractCheck, fields, output

WIRING = "wiring"  # modules of an app that a framework looks for: they only gather what the rooms define


@dataclass(frozen=True)
class Standing:
    app: str
    room: str
    ring: str
    path: str  # within the app, for rooms that are listed in parts


class RoomsContract(Contract):
    """Options: `apps`; `rings` from the top, one line per level; `wiring`, names of modules in an app's root; `base`,
    packages that everybody may import; `whole_rooms`, rooms that stand in one ring as a whole, as `room: ring`; and
    `order_<group>`, the rooms of each app from the top, as `app: room room/part room`, for the rings of `groups`."""

    type_name = "rooms"

    # import-linter replaces each field by the lines it read.
    apps: Any = fields.ListField(subfield=fields.StringField())
    rings: Any = fields.ListField(subfield=fields.StringField())
    wiring: Any = fields.ListField(subfield=fields.StringField())
    base: Any = fields.ListField(subfield=fields.StringField())
    whole_rooms: Any = fields.ListField(subfield=fields.StringField())
    groups: Any = fields.ListField(subfield=fields.StringField())
    orders: Any = fields.ListField(subfield=fields.StringField())

    def check(self, graph: ImportGraph, verbose: bool) -> ContractCheck:
        self._read_options()
        modules = sorted(module for module in graph.modules if module.split(".")[0] in self.apps)
        standings = {module: self._standing(module) for module in modules}
        lost = [module for module, standing in standings.items() if standing is None and not self._is_outer(module)]
        broken = []
        for importer, mine in standings.items():
            for imported in sorted(graph.find_modules_directly_imported_by(importer)):
                theirs = standings.get(imported)
                if mine and theirs and (why := self._forbidden(mine, theirs)):
                    broken.append((importer, imported, why))
        return ContractCheck(kept=not lost and not broken, metadata={"lost": lost, "broken": broken})

    def render_broken_contract(self, check: ContractCheck) -> None:
        for module in check.metadata["lost"]:
            output.print_error(f"{module} stands in no room and ring. See docs/architecture.md.")
        for importer, imported, why in check.metadata["broken"]:
            output.print_error(f"{importer} -> {imported}: {why}")

    def _read_options(self) -> None:
        self.rank = {name: -level for level, line in enumerate(self.rings) for name in line.split()}
        self.whole = dict(_pair(line) for line in self.whole_rooms)
        self.group = {ring: name for name, rings in map(_pair, self.groups) for ring in rings.split()}
        self.order: dict[tuple[str, str], list[str]] = {}
        for key, rooms in map(_pair, self.orders):
            app, group = key.split()
            self.order[app, group] = rooms.split()

    def _is_outer(self, module: str) -> bool:
        """Packages without code of their own, migrations, wiring, and the base."""
        parts = module.split(".")
        return (
            len(parts) == 1
            or parts[1] in self.wiring
            or any(module == base or module.startswith(f"{base}.") for base in self.base)
            or (len(parts) == 2 and self._is_room(module))
        )

    def _is_room(self, module: str) -> bool:
        app, room = module.split(".")
        return any(room == name.split("/")[0] for (of, _), rooms in self.order.items() if of == app for name in rooms)

    def _standing(self, module: str) -> Standing | None:
        app, *path = module.split(".")
        inside = "/".join(path)
        if not path or (self._is_outer(module) and f"{app}.{path[0]}" not in self.whole):
            return None
        ring = self.whole.get(f"{app}.{path[0]}")
        if ring is None and len(path) > 1 and self._is_room(f"{app}.{path[0]}"):
            ring = path[1]
        if ring not in self.rank:
            return None
        return Standing(app, path[0], ring, inside)

    def _forbidden(self, mine: Standing, theirs: Standing) -> str | None:
        if self.rank[theirs.ring] > self.rank[mine.ring]:
            return f"{theirs.ring} are above {mine.ring}"
        if mine.app != theirs.app or self.rank[theirs.ring] < self.rank[mine.ring]:
            return None
        if mine.room == theirs.room and (mine.ring != theirs.ring or self._place(mine) == self._place(theirs)):
            return None
        above, below = self._place(mine), self._place(theirs)
        if above is None or below is None:
            return f"the order of {mine.ring} in {mine.app} does not list both {mine.room} and {theirs.room}"
        return None if above < below else f"in the order of {mine.ring}, {theirs.room} is not below {mine.room}"

    def _place(self, standing: Standing) -> int | None:
        """The most exact entry of the order that names it: `quarantine/services/open` before `quarantine`."""
        order = self.order.get((standing.app, self.group.get(standing.ring, standing.ring)), [])
        fitting = [name for name in order if f"{standing.path}/".startswith(f"{name}/")]
        return order.index(max(fitting, key=len)) if fitting else None


def _pair(line: str) -> tuple[str, str]:
    key, _, value = line.partition(":")
    return key.strip(), value.strip()
