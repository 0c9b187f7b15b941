"""`python -m bench.structure [--root PATH] [--json] [--names]`: the shape of the product code as one table of figures.

Read from the source text alone, so any checkout can be measured, whatever its folders are called. Each figure's
definition is the docstring of the function that counts it. Migrations, tests and this folder are not product code; the
client (`sdk/`) counts in sizes and comments only.
"""

import argparse
import ast
import io
import json
import re
import statistics
import tokenize
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from configparser import ConfigParser
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

PRODUCT = ("reasoncodes", "governance", "attempts", "workflows", "config", "sdk")
SKIPPED = {"migrations", "tests", "__pycache__", "build"}
BESIDE_THE_CLIENT = ("simulator", "conformance")  # they count as server code, in whichever folder they are
LONG = 50
Function = ast.FunctionDef | ast.AsyncFunctionDef
DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
# Each with its app and the words that its file names begin with; see `capabilities`.
CAPABILITIES = {
    "ledger": ("governance", "ledger|seal|merkle|witness|epoch|divergence|deny_mode|verify_(?!bundle)"),
    "definitions": ("workflows", "definition|starter|diff|pictures"),
    "notifications": ("attempts", "notif|chat|slack|mail|letters|cards|channel"),
    "evidence": ("governance", "evidence|bundle|collectors"),
    "reviews": ("attempts", "review|human_review|panel"),
    "intake": ("attempts", "intake|idempotency|attempt_create|attempt_open|slots"),
    "webhooks": ("workflows", "webhook|endpoint|delivery"),
    "policies": ("governance", "policies|policy|condition"),
    "retention": ("governance", "retention|purge|erasure|erase|erasable|legal_hold|export|deletion|data_request"),
    "quarantine": ("attempts", "quarantine"),
}
FIXED = ("management/commands", "templatetags")
MARKS = re.compile(r"#\s*(noqa|type: ignore|pragma|pyright|fmt:|ruff|!)")
SQL = re.compile(
    r"^\s*\(?(SELECT\s|INSERT\s+INTO\s|UPDATE\s+\S+\s+(\w+\s+)?SET\s|DELETE\s+FROM\s|WITH\s+(RECURSIVE\s+)?\w+\s+(\([^)]*\)\s+)?AS\s"
    r"|LOCK\s+TABLE|SET\s+(LOCAL|SESSION)\s|CREATE\s|ALTER\s|COPY\s|TRUNCATE\s|LISTEN\s|NOTIFY\s|VALUES\s*\()"
)


@dataclass(frozen=True)
class Module:
    path: Path  # from the root
    text: str

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text)

    @cached_property
    def name(self) -> str:
        parts = [*self.path.with_suffix("").parts]
        if parts[:2] == ["sdk", "src"]:
            parts = parts[2:]
        return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)

    @property
    def is_package(self) -> bool:
        return self.path.name == "__init__.py"

    @cached_property
    def lines(self) -> int:
        return len(self.text.splitlines())

    @cached_property
    def definitions(self) -> list[Any]:
        """Public functions and classes at the top level, without constants."""
        return [node for node in self.tree.body if isinstance(node, DEFINITIONS) and not node.name.startswith("_")]

    @cached_property
    def named(self) -> set[str]:
        """Every name that the module reads or imports, and what it names in a text (a dotted path, `__all__`)."""
        found: set[str] = set()
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Name):
                found.add(node.id)
            elif isinstance(node, ast.Attribute):
                found.add(node.attr)
            elif isinstance(node, ast.ImportFrom):
                found |= {alias.name for alias in node.names}
            elif isinstance(node, ast.Constant) and isinstance(node.value, str) and len(node.value) < 120:
                found |= set(re.findall(r"\w+", node.value))
        return found


def modules_of(root: Path) -> list[Module]:
    paths = (path for top in PRODUCT for path in sorted((root / top).rglob("*.py")))
    shown = [path.relative_to(root) for path in paths]
    return [Module(path, (root / path).read_text()) for path in shown if not SKIPPED & set(path.parts)]


def served(modules: list[Module]) -> list[Module]:
    """All modules but the client's: the client is a package of its own that shares no code and may use the same
    names."""
    return [
        module
        for module in modules
        if module.path.parts[0] != "sdk" or any(word in str(module.path) for word in BESIDE_THE_CLIENT)
    ]


# Size


def size(modules: list[Module]) -> dict[str, float]:
    """Modules with something in them (an empty `__init__.py` is a folder, not a module), and their lines."""
    lines = sorted(module.lines for module in modules if module.text.strip())
    return {
        "modules": len(lines),
        "lines": sum(lines),
        "median_lines": statistics.median(lines),
        "p90_lines": lines[int(len(lines) * 0.9)],
        "modules_over_400_lines": sum(count > 400 for count in lines),
        "functions_over_50_lines": len(long_functions(modules)),
    }


def long_functions(modules: list[Module]) -> list[str]:
    """From `def` to the last line, decorators not counted."""
    return [
        f"{module.path}:{node.name}"
        for module in modules
        for node in ast.walk(module.tree)
        if isinstance(node, Function) and (node.end_lineno or 0) - node.lineno + 1 > LONG
    ]


def comments_per_100(modules: list[Module]) -> float:
    """Lines that are a `#` comment and nothing else, marks for tools apart; per 100 lines of code. A line of code is
    neither empty nor a comment nor part of a docstring."""
    comments = code = 0
    for module in modules:
        coded: set[int] = set()
        for token in tokenize.generate_tokens(io.StringIO(module.text).readline):
            if token.type == tokenize.COMMENT:
                comments += token.line.lstrip().startswith("#") and not MARKS.match(token.string)
            elif token.type not in NO_CODE:
                coded |= set(range(token.start[0], token.end[0] + 1))
        code += len(coded - docstring_lines(module.tree))
    return round(100 * comments / max(code, 1), 2)


NO_CODE = {tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}


def docstring_lines(tree: ast.Module) -> set[int]:
    found: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, *DEFINITIONS)) and ast.get_docstring(node, clean=False) is not None:
            found |= set(range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1))
    return found


# Places


def capabilities(modules: list[Module]) -> dict[str, dict[str, Any]]:
    """The files of each capability and their folders: files of its app with one of its words at the beginning of a word
    of their path, which includes all files of a folder with such a name. Files of other apps, a contract's documents
    and empty `__init__.py` are left out. `free` counts the folders without those that Django prescribes."""
    found: dict[str, dict[str, Any]] = {}
    for capability, (app, words) in CAPABILITIES.items():
        pattern = re.compile(rf"^{app}/(?!documents/)(?:.*[/_])?(?:{words})")
        chosen = [module.path for module in modules if module.text.strip() and pattern.match(str(module.path))]
        folders = Counter(str(path.parent) for path in chosen)
        where = dict(folders.most_common())
        free = [folder for folder in where if not folder.endswith(FIXED)]
        found[capability] = {"files": len(chosen), "folders": len(where), "free": len(free), "where": where}
    return found


def names_twice(modules: list[Module]) -> dict[str, list[str]]:
    """Public functions and classes at the top level whose name is defined in more than one module."""
    places: dict[str, set[str]] = defaultdict(set)
    for module in modules:
        for node in module.definitions:
            places[node.name].add(str(module.path))
    return {name: sorted(where) for name, where in sorted(places.items()) if len(where) > 1}


def with_sql(modules: list[Module]) -> list[str]:
    """Modules with a string, docstrings excluded, that begins like an SQL statement."""
    return [str(module.path) for module in modules if any(map(SQL.match, texts(module.tree)))]


def texts(tree: ast.Module) -> Iterator[str]:
    """Plain strings and the beginnings of f-strings, without docstrings."""
    documented = docstring_lines(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.lineno not in documented:
            yield node.value


# Imports


def imports(modules: list[Module], *, at_load: bool = False) -> dict[str, set[str]]:
    """Which product modules each module imports; `at_load`: only those that loading it loads."""
    known = {module.name for module in modules}
    found: dict[str, set[str]] = {}
    for module in modules:
        nodes = loading(module.tree) if at_load else ast.walk(module.tree)
        wanted = {target for node in nodes for target in targets(node, module, known)}
        found[module.name] = (wanted & known) - {module.name}
    return found


def loading(tree: ast.Module) -> Iterator[ast.AST]:
    waiting: list[ast.AST] = list(tree.body)
    while waiting:
        node = waiting.pop()
        yield node
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            continue
        if not isinstance(node, Function | ast.Lambda):
            waiting += ast.iter_child_nodes(node)


def targets(node: ast.AST, module: Module, known: set[str]) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        parents = module.name.split(".")[: None if module.is_package else -1]
        above = parents[: len(parents) - node.level + 1] if node.level else []
        base = ".".join([*above, *filter(None, [node.module])])
        for alias in node.names:
            inner = f"{base}.{alias.name}"
            yield inner if inner in known else base


def single_importer(modules: list[Module]) -> list[str]:
    """Modules that exactly one other product module imports, at load or later."""
    importers = Counter(target for wanted in imports(modules).values() for target in wanted)
    return sorted(name for name, count in importers.items() if count == 1)


def only_at_home(modules: list[Module]) -> list[str]:
    """Public functions without a decorator (those have a framework for a caller) whose name no other product module
    says in any way, but their own one does."""
    said = Counter(name for module in modules for name in module.named)
    return [
        f"{module.path}:{node.name}"
        for module in modules
        for node in module.definitions
        if isinstance(node, Function) and not node.decorator_list
        if said[node.name] == 1 and node.name in module.named
    ]


def said_nowhere(modules: list[Module]) -> list[str]:
    """Public functions without a decorator whose name no product module says: a framework calls them, or tests."""
    said = {name for module in modules for name in module.named}
    return [
        f"{module.path}:{node.name}"
        for module in modules
        for node in module.definitions
        if isinstance(node, Function) and not node.decorator_list and node.name not in said
    ]


def cycles(modules: list[Module]) -> list[list[str]]:
    """Groups of modules that import each other when they are loaded."""
    graph = imports(modules, at_load=True)
    reach = {name: reachable(graph, name) for name in graph}
    groups = {
        frozenset(other for other in reach[name] if name in reach[other]) for name in graph if name in reach[name]
    }
    return sorted(sorted(group) for group in groups)


def reachable(graph: dict[str, set[str]], start: str) -> set[str]:
    found: set[str] = set()
    waiting = list(graph[start])
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += graph[name]
    return found


# Contracts


def outside_contracts(modules: list[Module], root: Path, *, rings_only: bool = False) -> list[Module]:
    """Modules of the four apps in no layer of a layered contract below the apps, nor (unless `rings_only`) in a source
    of another contract. The contract between whole apps leaves nothing out and says nothing: it does not count. Nor do
    `__init__.py` and the simulator, which is a program outside."""
    patterns = [covering(name) for name in covered_names(root, rings_only=rings_only)]
    apps = [module for module in modules if module.path.parts[0] in PRODUCT[:4] and not module.is_package]
    inside = [module for module in apps if "simulator" not in module.path.parts]
    return [module for module in inside if not any(pattern.match(module.name) for pattern in patterns)]


def covered_names(root: Path, *, rings_only: bool) -> Iterator[str]:
    parser = ConfigParser(interpolation=None)
    parser.read(root / ".importlinter")
    for section in parser.sections():
        contract = parser[section]
        containers = contract.get("containers", "").split()
        for layer in re.findall(r"[\w.*]+", contract.get("layers", "")):
            yield from (f"{container}.{layer}" for container in containers) if containers else [layer]
        if not rings_only:
            yield from re.findall(r"[\w.*]+", contract.get("source_modules", "") + " " + contract.get("modules", ""))


def covering(name: str) -> "re.Pattern[str]":
    """The module and all below it; `*` is one part of a name, `**` any number. A whole app covers nothing."""
    if "." not in name:
        return re.compile(r"(?!)")
    parts = {"*": r"[^.]+", "**": r".+"}
    return re.compile(r"\.".join(parts.get(part, re.escape(part)) for part in name.split(".")) + r"(\.|$)")


# The table


def measure(root: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """The figures, and the names behind them."""
    everything = modules_of(root)
    modules = served(everything)
    twice, outside = names_twice(modules), outside_contracts(modules, root)
    beyond_rings = outside_contracts(modules, root, rings_only=True)
    lists: dict[str, Callable[[list[Module]], list[Any]]] = {
        "modules_with_one_importer": single_importer,
        "public_functions_used_only_at_home": only_at_home,
        "public_functions_no_product_module_names": said_nowhere,
        "modules_with_sql": with_sql,
        "import_cycles": cycles,
    }
    names = {title: find(modules) for title, find in lists.items()}
    figures = size(everything) | {
        "names_defined_twice": len(twice),
        "modules_outside_rings": len(beyond_rings),
        "lines_outside_rings": sum(module.lines for module in beyond_rings),
        "modules_outside_all_contracts": len(outside),
        "lines_outside_all_contracts": sum(module.lines for module in outside),
        "comments_per_100_lines_of_code": comments_per_100(everything),
        **{title: len(found) for title, found in names.items()},
    }
    names |= {"names_defined_twice": twice, "modules_outside_all_contracts": [module.name for module in outside]}
    names |= {"functions_over_50_lines": long_functions(everything), "capabilities": capabilities(modules)}
    return figures, names


def table(figures: dict[str, Any], found: dict[str, dict[str, Any]]) -> Iterator[str]:
    yield "| figure | value |"
    yield "|---|---|"
    yield from (f"| {title.replace('_', ' ')} | {value:,} |" for title, value in figures.items())
    yield ""
    yield "| capability | files | folders | not fixed by Django | where |"
    yield "|---|---|---|---|---|"
    for name, row in found.items():
        where = ", ".join(f"{folder} {count}" for folder, count in row["where"].items())
        yield f"| {name} | {row['files']} | {row['folders']} | {row['free']} | {where} |"


def listed(names: dict[str, Any]) -> Iterator[str]:
    for title, found in names.items():
        if title != "capabilities":
            yield f"\n== {title.replace('_', ' ')}: {len(found)}"
            rows: Iterable[Any] = found.items() if isinstance(found, dict) else found
            yield from (f"{row[0]}: {' '.join(row[1])}" if isinstance(row, tuple) else str(row) for row in rows)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.structure", description=__doc__)
    parser.add_argument("--root", type=Path, default=Path(__file__).resolve().parent.parent)
    parser.add_argument("--json", action="store_true", help="figures and names for programs")
    parser.add_argument("--names", action="store_true", help="also what was counted, name by name")
    options = parser.parse_args()
    figures, names = measure(options.root)
    if options.json:
        print(json.dumps({"figures": figures, "names": names}, indent=2))
        return
    print("\n".join([*table(figures, names["capabilities"]), *(listed(names) if options.names else ())]))


if __name__ == "__main__":
    main()
