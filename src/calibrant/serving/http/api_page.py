"""`/docs`: the HTTP API as a self-contained HTML page."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from importlib.resources import files
from typing import Any

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

_TYPE_NAMES = {
    "string": "text",
    "integer": "whole number",
    "boolean": "true or false",
    "object": "object",
}


def render_api_page(schema: Mapping[str, Any]) -> str:
    """Render an OpenAPI schema as HTML."""
    source = files("calibrant.serving.http").joinpath("api.html.j2")
    css = files("calibrant.reports").joinpath("templates", "report.css")
    template = Environment(
        autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=StrictUndefined
    ).from_string(source.read_text("utf-8"))
    schemas = schema["components"]["schemas"]
    return template.render(
        title=schema["info"]["title"],
        version=schema["info"]["version"],
        about=_paragraphs(schema["info"]["description"]),
        routes=list(_routes(schema["paths"], schemas)),
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
                "answers": [_response(*item) for item in sorted(route["responses"].items())],
            }


def _body(body: Mapping[str, Any] | None, schemas: Mapping[str, Any]) -> dict[str, str] | None:
    name = None if body is None else _schema_name(body)
    if name is None:
        return None
    example = json.dumps(schemas[name].get("example", {}), ensure_ascii=False, indent=2)
    return {"name": name, "example": example}


def _response(status: str, response: Mapping[str, Any]) -> dict[str, str | None]:
    description = response["description"]
    about = "Done." if description == "Successful Response" else description
    return {"status": status, "about": about, "message": _schema_name(response)}


def _schema_name(content: Mapping[str, Any]) -> str | None:
    """Return the name of the schema of a request body or response."""
    for kind in content.get("content", {}).values():
        if "$ref" in kind.get("schema", {}):
            return _describe_type(kind["schema"])
    return None


def _message(name: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    required = schema.get("required", ())
    fields = [
        {
            "name": field,
            "kind": _describe_type(rule),
            "needed": "yes" if field in required else "",
            "about": rule.get("description", ""),
        }
        for field, rule in schema["properties"].items()
    ]
    return {"name": name, "about": schema["description"], "fields": fields}


def _describe_type(rule: Mapping[str, Any]) -> str:
    """Describe the type of a value in words."""
    if "$ref" in rule:
        return str(rule["$ref"]).rpartition("/")[2]
    if "anyOf" in rule:
        return ", or ".join(_describe_type(option) for option in rule["anyOf"])
    if "enum" in rule:
        return " or ".join(json.dumps(option) for option in rule["enum"])
    kind: str = rule.get("type", "any value")
    if kind == "array":
        return f"list of {_describe_type(rule['items'])}"
    if isinstance(rule.get("additionalProperties"), Mapping):
        return f"object of {_describe_type(rule['additionalProperties'])}"
    return _TYPE_NAMES.get(kind, kind)


def _paragraphs(text: str) -> list[str]:
    return [" ".join(part.split()).replace("`", "") for part in text.strip().split("\n\n")]
