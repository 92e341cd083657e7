"""Hook of MkDocs: pages of the site that are made from code, and those that lie outside ``docs``."""

import ast
import hashlib
import importlib
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))
os.environ["COLUMNS"] = "100"  # of help texts

from tasks import cli, errors  # noqa: E402
from tasks.parameters.parameter_file import Parameters  # noqa: E402
from tasks.results.measures import measures  # noqa: E402


def _read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def _code(text: str) -> str:
    return f"````text\n{text.rstrip()}\n````\n"


COPIED = {f"{name.lower()}.md": f"{name}.md" for name in ("CONTRIBUTING", "SECURITY", "CHANGELOG")}
COPIED["data.md"] = "data/README.md"
SHIPPED = (
    "models",
    "tasks/ready_made",
    "tasks/masking/taggers",
    "tasks/masking/lists",
    "tasks/filling",
    "tasks/corpora",
    "profiles/hinglish_top",
)
"""Folders with files that were made from other works."""
SUFFIXES = (".safetensors", ".crfsuite", ".model", ".tsv", ".txt", "weighing.json")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages."""
    for path, text in _pages():
        files.append(File.generated(config, path, content=text))
    return files


def on_page_content(html: str, **_: object) -> str:
    """Docstrings announce code by two colons."""
    return html.replace("::</p>", ":</p>")


def _pages() -> Iterator[tuple[str, str]]:
    for path, source in COPIED.items():
        text = re.sub(r"\]\((\.\./)?docs/", "](", _read(source)).replace("](data/README.md", "](data.md")
        yield path, text + (_hashes() if path == "data.md" else "")
    yield "citation.md", f"# Cite palimpsest\n\nCite the software and the paper.\n\n{_code(_read('CITATION.cff'))}"
    yield "reference/python.md", "# Python interface\n\n::: palimpsest\n"
    yield "reference/params.md", _parameters()
    yield "reference/measures.md", _measures()
    yield "reference/profiles.md", _profiles()
    yield "reference/benchmarks.md", _benchmarks()
    yield "reference/messages.md", _messages()
    yield from _commands()


def _table(*rows: tuple[str, ...]) -> str:
    """The first row is the head."""
    lines = ["| " + " | ".join(" ".join(cell.split()).replace("|", "&#124;") for cell in row) + " |" for row in rows]
    return "\n".join([lines[0], "|---" * len(rows[0]) + "|", *lines[1:]]) + "\n"


def _commands() -> Iterator[tuple[str, str]]:
    page = "# Commands\n"
    for title, modules in cli.grouped_commands().items():
        rows = []
        for name, module_name in modules.items():
            module = importlib.import_module(module_name)
            rows.append((f"[`{name}`](commands/{name}.md)", module.SUMMARY))
            help_text = cli.command_parser(name, module).format_help()
            yield f"reference/commands/{name}.md", f"# palimpsest {name}\n\n{_code(help_text)}"
        page += f"\n## {title}\n\n{_table(('command', 'what it does'), *rows)}"
    yield "reference/commands.md", page


def _parameters() -> str:
    """The schema of the settings classes: each class once, below the key where it is first named."""
    schema = Parameters.model_json_schema()
    classes, keys = schema["$defs"], {}
    # A corpus is looked for below ``corpora``.
    waiting = sorted(schema["properties"].items(), key=lambda entry: entry[0] == "generic")
    for key, field in waiting:  # grows meanwhile
        for name, inside in _named(field, key):
            if name not in keys:
                keys[name] = inside
                waiting += [(f"{inside}.{below}", of) for below, of in classes[name].get("properties", {}).items()]
    text = "# params.yaml\n\nEvery key, its type, default and limits. An unknown key is an error.\n\n"
    text += _fields(schema, classes)
    for name, key in sorted(keys.items(), key=lambda entry: list(schema["properties"]).index(entry[1].split(".")[0])):
        kind = classes[name].get("properties", {}).get("kind", {}).get("const")
        title = f'<a id="{name}"></a>`{key}`' + (f", `kind: {kind}`" if kind else "")
        text += f"\n## {title}\n\n{_plain(classes[name])}\n\n{_fields(classes[name], classes)}"
    return text


def _named(field: dict[str, Any], key: str) -> Iterator[tuple[str, str]]:
    """The classes in the type of a field, with the keys of their fields."""
    if "$ref" in field:
        yield field["$ref"].rpartition("/")[2], key
    for one in (*field.get("anyOf", ()), *field.get("oneOf", ()), *field.get("allOf", ())):
        yield from _named(one, key)
    for below, inside in (("items", key), ("additionalProperties", f"{key}.NAME")):
        if isinstance(field.get(below), dict):
            yield from _named(field[below], inside)


def _fields(model: dict[str, Any], classes: dict[str, Any]) -> str:
    rows = []
    for name, field in model.get("properties", {}).items():
        needed = name in model.get("required", ())
        default = "required" if needed else _default(field)
        rows.append((f"`{name}`", _type(field, classes), default, _plain(field)))
    return _table(("key", "type and limits", "default", "meaning"), *rows) if rows else ""


def _default(field: dict[str, Any]) -> str:
    value = field.get("default", "empty")
    if isinstance(value, dict) and "additionalProperties" not in field:
        return "its own defaults"
    return "empty" if value in ("empty", {}, []) else f"`{json.dumps(value, ensure_ascii=False)}`"


LIMITS = {"minimum": "from {}", "exclusiveMinimum": "above {}", "maximum": "to {}", "exclusiveMaximum": "below {}"}
LIMITS |= {"minItems": "at least {}", "pattern": "of the form `{}`"}


def _type(field: dict[str, Any], classes: dict[str, Any]) -> str:
    if "$ref" in field:
        name = field["$ref"].rpartition("/")[2]
        return f"[{classes[name].get('properties', {}).get('kind', {}).get('const', 'section')}](#{name})"
    if several := field.get("anyOf") or field.get("oneOf"):
        return " or ".join(dict.fromkeys(_type(one, classes) for one in several))
    if values := field.get("enum") or ([field["const"]] if "const" in field else []):
        return " or ".join(f"`{value}`" for value in values)
    text = str(field.get("type", "any"))
    limits = ", ".join(said.format(field[name]) for name, said in LIMITS.items() if name in field)
    if text == "array":
        text = f"list of {_type(field['items'], classes)}" if "items" in field else "list"
    elif text == "object":
        below = field.get("additionalProperties")
        text = f"by name: {_type(below, classes)}" if isinstance(below, dict) else "section"
    return f"{text} ({limits})" if limits else text


def _plain(described: dict[str, Any]) -> str:
    return str(described.get("description", "")).replace("``", "`")


def _measures() -> str:
    head = ("name in `summary.json`", "title", "report", "better")
    rows: dict[bool, list[tuple[str, ...]]] = {True: [], False: []}
    for each in measures():
        rows[each.step in ("audit", "unmasked")].append((f"`{each.name}`", each.title, each.step, each.better or ""))
    attacks, others = _table(head, *rows[True]), _table(head, *rows[False])
    text = "# Measures and attacks\n\n## Measures\n\nThe protocols are those of [perplexity](../perplexity.md) and "
    text += f"[word error rate](../word_error_rate.md).\n\n{others}\n## Attacks\n\n[The audit](../audit.md) says how "
    return text + f"each attack works, and [params.yaml](params.md#AuditSettings) has their sizes.\n\n{attacks}"


def _profiles() -> str:
    text = "# Profiles\n\nA profile is another experiment: `palimpsest profile NAME` writes its `params.yaml`.\n\n"
    rows = []
    for path in sorted((ROOT / "profiles").glob("*.yaml")):
        comment = " ".join(line.strip("# ") for line in path.read_text(encoding="utf-8").split("\n\n")[0].splitlines())
        rows.append((f"`{path.stem}`", re.split(r"(?<=\w\))[.:] |(?<=\w)[.:] ", comment)[0] + "."))
    return text + _table(("profile", "experiment"), *rows)


def _hashes() -> str:
    """SHA-256 of the files of models and lists in git, and the pinned packages with theirs."""
    listed = subprocess.run(["git", "ls-files", *SHIPPED], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    names = [name for name in listed.splitlines() if name.endswith(SUFFIXES)]
    rows = [(f"`{name}`", f"`{hashlib.sha256((ROOT / name).read_bytes()).hexdigest()}`") for name in names]
    text = f"\n## Hashes of models and lists\n\n{_table(('file', 'SHA-256'), *rows)}\n"
    return text + f"## Hashes of the packages that ship text and models\n\n{_code(_read('requirements-models.txt'))}"


def _messages() -> str:
    """Every message of the code that refuses something, by the package that raises it. Parts that vary are ``…``."""
    kinds = {name for name, kind in vars(errors).items() if isinstance(kind, type)}
    text = "# Messages\n\nEvery refusal, by package of the code. `…` is a part that varies: a name, a path, a number. "
    text += "[Exit codes and messages](../errors.md) has remedies for the frequent ones.\n"
    for package in sorted(path for folder in ("tasks", "flows", "dashboards") for path in (ROOT / folder).iterdir()):
        paths = [package] if package.suffix == ".py" else sorted(package.rglob("*.py"))
        nodes = [node for path in paths for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))]
        raised = [node.exc for node in nodes if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call)]
        found = {_said(call.args[0]) for call in raised if ast.unparse(call.func) in kinds and call.args}
        if found := {one for one in found if re.search(r"\w+ \w+", one)}:
            title = package.relative_to(ROOT).with_suffix("").as_posix()
            text += f"\n## {title}\n\n{_code(chr(10).join(sorted(found, key=str.lower)))}"
    return text


def _said(node: ast.expr) -> str:
    """The text of a message, with an ellipsis for each part that varies."""
    if isinstance(node, ast.Constant):
        return " ".join(str(node.value).split())
    if isinstance(node, ast.JoinedStr):
        return " ".join("".join(part.value if isinstance(part, ast.Constant) else "…" for part in node.values).split())
    if isinstance(node, ast.BinOp):
        return f"{_said(node.left)} {_said(node.right)}"
    return "…"


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.4g}"


def _benchmarks() -> str:
    text = """# Benchmarks

    make bench

A row compares one step with another program that does the same work. Both are measured in one run on one machine, in
turns, and their outputs are compared first. A ratio above 1 means that palimpsest is faster. Peers run as a careful
user configures them: in batches, sorted by length, without parts that the work does not need.

Some peers are faster:

- **A regular expression and a set** know no addresses and no numbers with signs, count nothing and write no sidecar.
- **MlflowClient.log_batch** alone is the lower bound of publishing, which also reads the reports.
"""
    rows = json.loads(_read("benchmarks/results/latest.json"))
    machines = {f"{row['machine']['processor']}, {row['machine']['cores']} cores" for row in rows}
    text += f"\nMachine: {'; '.join(sorted(machines))}. "
    text += f"Dates: {min(row['date'] for row in rows)} to {max(row['date'] for row in rows)}. "
    text += f"Commits: {', '.join(sorted({row.get('commit', 'not stored') for row in rows}))}.\n"
    for module in dict.fromkeys(row["module"] for row in rows):
        table = [("measured", "palimpsest", "peer", "unit", "ratio")]
        for row in rows:
            if row["module"] == module:
                ours, peer, ratio = (row[key] for key in ("ours", "peer", "ratio"))
                table.append((row["name"], _number(ours), _number(peer), row["unit"], _number(ratio)))
        text += f"\n## {module.replace('_', ' ').capitalize()}\n\n{_table(*table)}"
    return text
