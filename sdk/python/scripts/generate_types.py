"""Writes `src/quorate/types.py`: the types of the wire, out of `docs/openapi.json`.

The generator is datamodel-code-generator. Before it the description is made fit for people: decimal strings that are numbers
become `int`, error codes stay open, entries are `quorate.Entry`, and each type says where it occurs.

    python scripts/generate_types.py [FILE]
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, cast

HERE = Path(__file__).resolve().parent
OPENAPI = HERE.parents[2] / "docs/openapi.json"
TARGET = HERE.parent / "src/quorate/types.py"

# What is written as a decimal string since it has 64 bits.
DECIMAL = "^(0|[1-9][0-9]{0,19})$"
# Of those, what nobody counts with.
OPAQUE = {"cas", "session", "sessions"}
# What says how long or how great something may be: nodes check that.
BOUNDS = ("minLength", "maxLength", "minimum", "maximum", "minItems", "maxItems", "pattern", "format")
HEADER = '''"""The types of the wire, as `/openapi.json` describes them.

Written by `scripts/generate_types.py`; do not edit.
"""

# pyright: reportUnusedImport=false
'''

Schema = dict[str, Any]


def main() -> None:
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else TARGET
    description = json.loads(OPENAPI.read_text())
    schemas: Schema = description["components"]["schemas"]
    answered = reachable(description)
    for name in list(schemas):
        if name not in answered:
            del schemas[name]
    for schema in schemas.values():
        join_names(schema)
    for name, words in occurrences(description).items():
        if name in schemas:
            schemas[name].setdefault("description", words)
    for name, schema in schemas.items():
        schema.setdefault("description", f"Part of others: `{name}`.")
        soften(schema, None)
    schemas["ErrorCode"] = {"type": "string", "description": "What an error is; a newer cluster may know more of them."}
    entry: Schema = {"type": "object", "customTypePath": "quorate._entry.AnyEntry"}
    schemas = cast("Schema", replace_entries(schemas, entry))
    del schemas["EntryView"], schemas["ReadAnswer"]
    generate(schemas, target)


def reachable(description: Schema) -> set[str]:
    """The schemas that answers are made of: what is asked is given as arguments and needs no types."""
    answers = [
        answer
        for methods in description["paths"].values()
        for operation in methods.values()
        if isinstance(operation, dict)
        for answer in cast("Schema", operation)["responses"].values()
    ]
    found: set[str] = set()
    names = references([*answers, {"$ref": "#/components/schemas/WatchEnd"}])
    while names:
        name = names.pop()
        if name not in found:
            found.add(name)
            names |= references(description["components"]["schemas"][name])
    return found


def references(part: Any) -> set[str]:
    """The names of the schemas that are named in this part."""
    if isinstance(part, list):
        return set[str]().union(*(references(one) for one in cast("list[Any]", part)))
    if not isinstance(part, dict):
        return set()
    part = cast("Schema", part)
    own = {part["$ref"].rpartition("/")[2]} if "/schemas/" in str(part.get("$ref")) else set[str]()
    return own.union(*(references(one) for one in part.values()))


def occurrences(description: Schema) -> dict[str, str]:
    """Which operation takes or answers each schema."""
    found: dict[str, list[str]] = {}
    for path, methods in description["paths"].items():
        for method, operation in methods.items():
            if not isinstance(operation, dict):
                continue
            operation = cast("Schema", operation)
            where = f"`{method.upper()} {path}`"
            note(found, operation.get("requestBody"), f"What {where} takes.")
            for status, answer in operation["responses"].items():
                if status.startswith("2"):
                    note(found, answer, f"What {where} answers.")
    return {name: words[0] for name, words in found.items()}


def note(found: dict[str, list[str]], part: Schema | None, words: str) -> None:
    for content in (part or {}).get("content", {}).values():
        name = content.get("schema", {}).get("$ref", "").rpartition("/")[2]
        if name and words not in found.setdefault(name, []):
            found[name].append(words)


def join_names(schema: Schema) -> None:
    """Makes one field of a name and of its form in base64: a text in Python, whatever it is in JSON."""
    properties: Schema = schema.get("properties", {})
    for encoded in [name for name in properties if name.endswith("_base64")]:
        name = encoded.removesuffix("_base64")
        if name in ("key", "prefix", "name", "keys") and properties.pop(encoded).get("x-instead-of") == name:
            schema["required"] = [*schema.get("required", []), name]


def soften(schema: Any, name: str | None) -> None:
    """Makes numbers of decimal strings, leaves out bounds, and gives flags that may be absent their value."""
    if isinstance(schema, list):
        for part in cast("list[Any]", schema):
            soften(part, name)
    if not isinstance(schema, dict):
        return
    schema = cast("Schema", schema)
    if schema.get("pattern") == DECIMAL and name not in OPAQUE:
        schema["type"] = ["integer", "null"] if isinstance(schema["type"], list) else "integer"
    if "type" in schema:
        for bound in BOUNDS:
            schema.pop(bound, None)
    required = schema.get("required", [])
    for property_name, part in schema.get("properties", {}).items():
        soften(part, property_name)
        if part.get("type") == "boolean" and property_name not in required:
            part["default"] = False
    for key in ("items", "anyOf", "oneOf", "allOf", "additionalProperties"):
        soften(schema.get(key), name)


def replace_entries(part: Any, entry: Schema) -> Any:
    """Puts our own class in the place of each reference to an entry."""
    if isinstance(part, list):
        return [replace_entries(one, entry) for one in cast("list[Any]", part)]
    if not isinstance(part, dict):
        return part
    part = cast("Schema", part)
    if part.get("$ref", "").endswith("/EntryView"):
        return dict(entry)
    return {key: replace_entries(value, entry) for key, value in part.items()}


def generate(schemas: Schema, target: Path) -> None:
    info = {"title": "Quorate", "version": "1"}
    document: Schema = {"openapi": "3.1.0", "info": info, "paths": {}, "components": {"schemas": schemas}}
    with tempfile.TemporaryDirectory() as home:
        source = Path(home) / "openapi.json"
        source.write_text(json.dumps(document))
        command = [str(Path(sys.executable).with_name("datamodel-codegen")), "--input", str(source)]
        command += ["--input-file-type", "openapi", "--output", str(target), "--disable-warnings"]
        command += ["--output-model-type", "dataclasses.dataclass", "--target-python-version", "3.10"]
        command += ["--dataclass-arguments", '{"frozen": true, "slots": true, "kw_only": true}']
        command += ["--enum-field-as-literal", "all", "--use-standard-collections", "--use-union-operator"]
        command += ["--strict-nullable", "--use-schema-description", "--disable-timestamp"]
        command += ["--custom-file-header", HEADER]
        subprocess.run(command, check=True, stderr=subprocess.DEVNULL)
    # The rules are named here, since those of the project go by where a file is.
    for verb in (["check", "--fix-only", "--select", "D200,D212,F401,I"], ["format"]):
        command = [str(Path(sys.executable).with_name("ruff")), *verb, "--quiet", "--isolated", "--line-length", "140"]
        subprocess.run([*command, "--target-version", "py310", str(target)], check=True)


if __name__ == "__main__":
    main()
