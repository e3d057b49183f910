# SPDX-License-Identifier: Apache-2.0
"""Writes docs/python.md: signatures from the source and _stele.pyi, texts from docstrings.

    PYTHONPATH=build/python python3 docs/reference.py >docs/python.md

Only stele itself is imported, for the docstrings of what is written in C.
"""

import ast
import re
import textwrap
from pathlib import Path

import stele

HERE = Path(__file__).resolve().parents[1] / "python/stele"
CORE = (
    ("Reading", ("dataset",), ("Sample", "Tensor")),
    ("Loading", ("loader",), ("Batch",)),
    ("Writing", ("writer", "schema"), ()),
    ("Verbs", ("verbs", "options", "progress"), ()),
    ("Reports", ("reports",), ()),
    ("Errors", ("errors",), ()),
)
OPTIONS = ("Layout", "Source")  # of verbs, which users never name
ADAPTERS = ("torch", "folder", "nodes", "grain", "huggingface", "ray", "tf", "spdl", "wids",
            "dali", "dlio", "parquet", "sources")  # fmt: skip
HEAD = """# Reference

*Written by `docs/reference.py` from the docstrings; the tests of the package check that it is up to date.*
"""


def text(doc):
    """A docstring as Markdown."""
    out = []
    for part in re.split(r"\n\n+", doc.replace("``", "`").strip()):
        head, _, rest = part.partition("\n")
        if not re.fullmatch(r"(Args|Raises|Returns|Attributes):", head):
            out.append(part)
            continue
        items = []
        for line in rest.split("\n"):
            line = line[4:]
            if line.startswith(" ") and items or head == "Returns:" and items:
                items[-1] += " " + line.strip()
            elif head == "Returns:":
                items.append(line)
            else:
                name, _, more = line.partition(": ")
                names = ", ".join(f"`{n}`" for n in name.split(", "))
                items.append(f"{names}: {more}" if more else line)
        out.append(f"*{head[:-1]}*\n" + "".join(f"\n- {item}" for item in items))
    return "\n\n".join(out) + "\n"


def arguments(spec):
    """Each as it stands in a call."""
    both = [*spec.posonlyargs, *spec.args]
    plain = [None] * (len(both) - len(spec.defaults)) + spec.defaults
    pairs = list(zip(both, plain, strict=True))
    if spec.posonlyargs:
        pairs.insert(len(spec.posonlyargs), ("/", None))
    if pairs and getattr(pairs[0][0], "arg", "") in ("self", "cls"):
        del pairs[0]
    if pairs and pairs[0][0] == "/":
        del pairs[0]
    if spec.vararg:
        pairs.append((f"*{ast.unparse(spec.vararg)}", None))
    elif spec.kwonlyargs:
        pairs.append(("*", None))
    pairs += zip(spec.kwonlyargs, spec.kw_defaults, strict=True)
    if spec.kwarg:
        pairs.append((f"**{ast.unparse(spec.kwarg)}", None))
    for name, value in pairs:
        name = name if isinstance(name, str) else ast.unparse(name)
        yield name if value is None else f"{name} = {ast.unparse(value)}"


def signature(name, function):
    """A call, as a block of its own."""
    returns = f" -> {ast.unparse(function.returns)}" if function.returns else ""
    each = [argument.replace("_stele.", "") for argument in arguments(function.args)]
    whole = f"{name}({', '.join(each)}){returns}"
    if len(whole) > 88:
        glued = " ".join(f"{argument},".replace(" ", "\0") for argument in each)
        lines = textwrap.wrap(glued, 84, break_on_hyphens=False, break_long_words=False)
        lines = [line.replace("\0", " ") for line in lines]
        whole = "\n".join((f"{name}(", *(f"    {line}" for line in lines), f"){returns}"))
    return textwrap.indent(whole.replace("_stele.", ""), "    ")


def docs(node):
    return ast.get_docstring(node) or ""


def entry(level, name, doc, call=""):
    call = f"{call}\n\n" if call else ""
    return f"{'#' * level} {name}\n\n{call}{text(doc)}\n"


def member(level, name, function, doc):
    """A method, or a property with its type."""
    if any(ast.unparse(d) == "property" for d in function.decorator_list):
        return entry(level, name, doc, f"    {name}: {ast.unparse(function.returns)}")
    return entry(level, f"{name}()", doc, signature(name, function))


def fields(node):
    """Of a NamedTuple or TypedDict: names, types and what is said of them."""
    out = ""
    for item, after in zip(node.body, [*node.body[1:], None], strict=True):
        if isinstance(item, ast.AnnAssign) and not item.target.id.startswith("_"):
            said = isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant)
            more = " ".join(after.value.value.split()) if said else ""
            out += f"- `{ast.unparse(item)}`" + (f": {more}" if more else "") + "\n"
    return out + "\n" if out else ""


def callables(node):
    """Functions in a class or module, of overloads the last."""
    found = {}
    for item in node.body:
        if isinstance(item, (ast.FunctionDef, ast.AsyncFunctionDef)):
            found[item.name] = item
    return found


def klass(level, node, module):
    found = callables(node)
    init = found.get("__new__") or found.get("__init__")
    if init:
        init.returns = None
    call = signature(node.name, init) if init and init.args.args[1:] else ""
    out = entry(level, f"{module}.{node.name}", docs(node), call)
    plain = {ast.unparse(base) for base in node.bases} & {"NamedTuple", "TypedDict", "Layout"}
    out += fields(node) if plain else ""
    for name, function in found.items():
        if not name.startswith("_") and docs(function):
            out += member(level + 1, name, function, docs(function))
    return out + inherited(level + 1, node, found)


def inherited(level, node, known):
    """What a class has of the extension's."""
    stub = ast.parse((HERE / "_stele.pyi").read_text())
    bases = {ast.unparse(base).removeprefix("_stele.") for base in node.bases}
    out = ""
    for cls in stub.body:
        if isinstance(cls, ast.ClassDef) and cls.name in bases:
            for method, function in callables(cls).items():
                doc = getattr(getattr(stele._stele, cls.name), method).__doc__ or ""
                if doc and not method.startswith("_") and method not in known:
                    out += member(level, method, function, doc)
    return out


def compiled(level, name, stub):
    """A class of the extension: its signatures are in the stub, its docstrings here."""
    cls = getattr(stele, name)
    node = next(n for n in stub.body if isinstance(n, ast.ClassDef) and n.name == name)
    out = entry(level, f"stele.{name}", cls.__doc__ or "")
    for method, function in callables(node).items():
        doc = getattr(getattr(cls, method, None), "__doc__", "") or ""
        if doc and not method.startswith("_"):
            out += member(level + 1, method, function, doc)
    return out


def parsed(name):
    """A module, or a package and what it takes from others of its own."""
    package = HERE / name / "__init__.py"
    if not package.exists():
        return ast.parse((HERE / f"{name}.py").read_text())
    tree = ast.parse(package.read_text())
    for node in list(tree.body):
        if isinstance(node, ast.ImportFrom) and node.level == 1:
            names = {alias.name for alias in node.names}
            own = ast.parse((HERE / name / f"{node.module}.py").read_text()).body
            tree.body += [item for item in own if getattr(item, "name", "") in names]
    return tree


def module(level, name, public, prefix):
    tree = parsed(name)
    out = ""
    for node in tree.body:
        wanted = getattr(node, "name", "_")
        if wanted.startswith("_") or public is not None and wanted not in (*public, *OPTIONS):
            continue
        if isinstance(node, ast.ClassDef):
            out += klass(level, node, prefix)
        elif docs(node):
            call = signature(f"{prefix}.{wanted}", node)
            out += entry(level, f"{prefix}.{wanted}()", docs(node), call)
    return out


def adapter(name):
    tree = parsed(name)
    public = ast.literal_eval(next(
        (node.value for node in tree.body if isinstance(node, ast.Assign)
         and ast.unparse(node.targets[0]) == "__all__"), ast.Constant(None),
    ))  # fmt: skip
    out = f"## stele.{name}\n\n{text(docs(tree))}\n"
    return out + module(3, name, public, f"stele.{name}")


def page():
    stub = ast.parse((HERE / "_stele.pyi").read_text())
    out = HEAD + "\n"
    for heading, modules, classes in CORE:
        out += f"## {heading}\n\n"
        for name in modules:
            prefix = "stele.options" if name == "options" else "stele"
            out += module(3, name, stele.__all__, prefix)
        out += "".join(compiled(3, name, stub) for name in classes)
    out += "".join(map(adapter, ADAPTERS))
    return re.sub(r"\n{3,}", "\n\n", out).rstrip() + "\n"


if __name__ == "__main__":
    print(page(), end="")
