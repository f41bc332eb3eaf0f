"""What `fxdoctor rules` prints: the table of rules, the dangerous forms, or the page of one rule."""

from __future__ import annotations

import difflib
import importlib
import importlib.util

from .rules import all_rules
from .rules.base import Rule


def find_rule(name: str) -> tuple[Rule | None, str]:
    """The rule with this slug or code, else None and a line that says what comes close."""
    registry = all_rules()
    for rule in registry.values():
        if name.strip().lower() in (rule.slug, rule.code.lower()):
            return rule, ""
    known = {key.lower(): key for r in registry.values() for key in (r.slug, r.code)}
    near = difflib.get_close_matches(name.lower(), known, 3, 0.5)
    hint = f"did you mean {', '.join(known[n] for n in near)}?" if near else "`fxdoctor rules` lists them"
    return None, f"there is no rule {name!r}; {hint}"


def overview() -> str:
    """All rules, how to use them, and the dangerous forms of source."""
    how = "`fxdoctor rules SLUG` explains one; `# fxdoctor: ignore[SLUG]` at a line's end silences it there."
    forms = forms_table()
    parts = [rules_table(), how]
    if forms:
        parts += ["Forms in source that are worth a look:", forms]
    return "\n\n".join(parts)


def rules_table() -> str:
    """Code, slug and summary of every rule."""
    from tabulate import tabulate

    rows = [["code", "rule", "what it finds"]] + [[r.code, r.slug, r.summary] for r in all_rules().values()]
    return tabulate(rows, tablefmt="plain", disable_numparse=True)


def forms_table() -> str:
    """The table of dangerous source forms and their safe twins; "" where it is not there."""
    name = f"{__package__}.source_risks"
    if importlib.util.find_spec(name) is None:
        return ""
    table = importlib.import_module(name).table
    from tabulate import tabulate

    rows = [["form", "risk", "write instead", "rule"], *table()]
    widths = [28, 44, 40, 20]
    return tabulate(rows, tablefmt="plain", disable_numparse=True, maxcolwidths=widths)


def rule_page(rule: Rule) -> str:
    """The rule's documentation, then its wrong and its right example."""
    parts = [f"{rule.code} {rule.slug}: {rule.summary}", rule.doc.strip()]
    for heading, code in (("Wrong:", rule.bad), ("Right:", rule.good)):
        if code.strip():
            parts.append(heading + "\n\n" + "\n".join(f"    {line}".rstrip() for line in code.strip("\n").splitlines()))
    return "\n\n".join(parts)
