"""`/docs`: the HTTP interface as a page for people, which loads nothing from anywhere."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from importlib.resources import files
from typing import Any

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

__all__ = ["api_page"]

_WORDS = {
    "string": "text",
    "integer": "whole number",
    "boolean": "true or false",
    "object": "object",
}


def api_page(described: Mapping[str, Any]) -> str:
    """Return the page of an OpenAPI description."""
    source = files("calibrant.serving.http").joinpath("api.html.j2")
    css = files("calibrant.reports").joinpath("templates", "report.css")
    made = Environment(
        autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=StrictUndefined
    ).from_string(source.read_text("utf-8"))
    schemas = described["components"]["schemas"]
    return made.render(
        title=described["info"]["title"],
        version=described["info"]["version"],
        about=_paragraphs(described["info"]["description"]),
        routes=list(_routes(described["paths"], schemas)),
        messages=[_message(name, schemas[name]) for name in sorted(schemas)],
        css=Markup(css.read_text("utf-8")),
    )


def _routes(paths: Mapping[str, Any], schemas: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for path, methods in paths.items():
        for method, route in methods.items():
            yield {
                "id": route["operationId"],
                "method": method.upper(),
                "path": path,
                "summary": route["summary"],
                "about": _paragraphs(route["description"]),
                "body": _body(route.get("requestBody"), schemas),
                "answers": [_answer(*each) for each in sorted(route["responses"].items())],
            }


def _body(given: Mapping[str, Any] | None, schemas: Mapping[str, Any]) -> dict[str, str] | None:
    name = None if given is None else _named(given)
    if name is None:
        return None
    example = json.dumps(schemas[name].get("example", {}), ensure_ascii=False, indent=2)
    return {"name": name, "example": example}


def _answer(status: str, given: Mapping[str, Any]) -> dict[str, str | None]:
    said = given["description"]
    about = "Done." if said == "Successful Response" else said
    return {"status": status, "about": about, "message": _named(given)}


def _named(given: Mapping[str, Any]) -> str | None:
    """Return the name of the message that a body or an answer is."""
    for kind in given.get("content", {}).values():
        if "$ref" in kind.get("schema", {}):
            return _kind(kind["schema"])
    return None


def _message(name: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    needed = schema.get("required", ())
    fields = [
        {
            "name": field,
            "kind": _kind(rule),
            "needed": "yes" if field in needed else "",
            "about": rule.get("description", ""),
        }
        for field, rule in schema["properties"].items()
    ]
    return {"name": name, "about": schema["description"], "fields": fields}


def _kind(rule: Mapping[str, Any]) -> str:
    """Say in words what a value must be.

    Examples
    --------
    >>> _kind({"anyOf": [{"type": "array", "items": {"type": "number"}}, {"type": "null"}]})
    'list of number, or null'
    """
    if "$ref" in rule:
        return str(rule["$ref"]).rpartition("/")[2]
    if "anyOf" in rule:
        return ", or ".join(_kind(each) for each in rule["anyOf"])
    if "enum" in rule:
        return " or ".join(json.dumps(each) for each in rule["enum"])
    kind: str = rule.get("type", "any value")
    if kind == "array":
        return f"list of {_kind(rule['items'])}"
    if isinstance(rule.get("additionalProperties"), Mapping):
        return f"object of {_kind(rule['additionalProperties'])}"
    return _WORDS.get(kind, kind)


def _paragraphs(text: str) -> list[str]:
    return [" ".join(part.split()).replace("`", "") for part in text.strip().split("\n\n")]
