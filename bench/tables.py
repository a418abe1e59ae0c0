"""tables.py - lines of JSON into Markdown: a table with ratios to ours, and the goals beside ours.

Of several runs the minimum counts; the maximum is shown, so that noise is seen."""
from dataclasses import dataclass

OURS = 'kubelua'


@dataclass
class Column:
    title: str
    key: str
    scale: float = 1           # what is shown: the line's value times this
    more_is_better: bool = False


@dataclass
class Goal:
    """Ours against a number; `of`: another row than ours."""
    key: str
    limit: float
    of: str = OURS


@dataclass
class Ratio:
    """Ours against the best of the peers whose names begin so: at most this fraction of it."""
    key: str
    begins: tuple
    fraction: float
    who: str


class Results:
    """Lines by row, in the order in which rows came; and why a row is missing."""

    def __init__(self):
        self.lines, self.absent = {}, {}

    def add(self, name, line, why=None):
        if line:
            self.lines.setdefault(name, []).append(line)
            self.absent.pop(name, None)
        elif name not in self.lines:
            self.absent[name] = why

    def values(self, name, column):
        """Smallest and largest, as shown; None when no run has it. The better one comes first."""
        found = [
            x[column.key] * column.scale
            for x in self.lines.get(name, [])
            if x.get(column.key) is not None and x[column.key] >= 0
        ]
        if not found:
            return None
        return (max(found), min(found)) if column.more_is_better else (min(found), max(found))

    def best(self, name, column):
        v = self.values(name, column)
        return v and v[0]


def number(x):
    """Three digits that count, and no exponents; small counts as they are."""
    if isinstance(x, int):
        return f'{x:,}'
    return (
        f'{x:,.0f}'
        if abs(x) >= 100
        else f'{x:.1f}' if abs(x) >= 10 else f'{x:.2f}' if abs(x) >= 1 else f'{x:.3f}'
    )


def times(x):
    return f'{x:,.0f}' if x >= 10 else f'{x:.1f}' if x >= 1 else f'{x:.2f}'


def cell(values, ours):
    if not values:
        return '-'
    best, worst = values
    text = number(best) + (f' .. {number(worst)}' if number(worst) != number(best) else '')
    return text + (f' (x{times(best / ours)})' if ours else '')


def table(results, columns, first='', ours=OURS):
    """One row per peer; (xR) says how many times ours it is."""
    out = [f'| {first} | ' + ' | '.join(c.title for c in columns) + ' |', '|' + ' --- |' * (len(columns) + 1)]
    for name in results.lines:
        cells = [
            cell(results.values(name, c), None if name == ours else results.best(ours, c)) for c in columns
        ]
        out.append(f'| {"**" + name + "**" if name == ours else name} | ' + ' | '.join(cells) + ' |')
    for name, why in results.absent.items():
        out.append(f'| {name} | not run: {why} |' + ' |' * (len(columns) - 1))
    return '\n'.join(out)


def pivoted(groups, column):
    """One figure of several measurements side by side: a row per peer, a column per group. `groups`: (label,
    Results)."""
    results = Results()
    for label, group in groups:
        for name, lines in group.lines.items():
            kept = results.lines.setdefault(name, [])
            kept.extend({} for _ in range(len(lines) - len(kept)))
            for row, line in zip(kept, lines):
                row[label] = line.get(column.key)
        for name, why in group.absent.items():
            if name not in results.lines:
                results.absent[name] = why
    return results, [Column(label, label, column.scale, column.more_is_better) for label, _ in groups]


def pivot(groups, column):
    return table(*pivoted(groups, column), column.title)


def verdict(value, limit, more_is_better):
    share = value / limit
    if more_is_better:
        return (
            f'met, {100 * (share - 1):.0f} % above'
            if share >= 1
            else f'**not met**, {100 * (1 - share):.0f} % short'
        )
    if share <= 1:
        return f'met, {100 * (1 - share):.0f} % below'
    return (
        f'**not met**, {100 * (share - 1):.0f} % above'
        if share < 2
        else f'**not met**, {times(share)} times as much'
    )


def judge(results, columns, goals):
    """Rows of (figure, goal, ours, verdict)."""
    rows = []
    for g in goals:
        c = next(c for c in columns if c.key == g.key)
        who = getattr(g, 'of', OURS)
        value = results.best(who, c)
        what = c.title if who == OURS else f'{c.title}, {who}'
        if isinstance(g, Goal):
            goal = f'{"at least" if c.more_is_better else "at most"} {number(g.limit)}'
            rows.append(
                (what, goal, number(value), verdict(value, g.limit, c.more_is_better))
                if value is not None
                else (what, goal, '-', 'not run')
            )
            continue
        goal = f'at most 1/{1 / g.fraction:.0f} of {g.who}'
        peers = {n: results.best(n, c) for n in results.lines if n.startswith(g.begins)}
        peers = {n: v for n, v in peers.items() if v is not None}
        if value is None or not peers:
            rows.append((what, goal, '-', 'not run'))
            continue
        best = min(peers, key=peers.get)
        rows.append(
            (
                what,
                f'{goal} ({best}, {number(peers[best])})',
                f'1/{times(peers[best] / value)}',
                verdict(value, peers[best] * g.fraction, False),
            )
        )
    return rows


def goal_grid(rows):
    """Goals of one kind side by side: rows of (figure, goal, {label: (ours, verdict)})."""
    labels = list(dict.fromkeys(label for _, _, found in rows for label in found))
    out = [f'| goal for | goal | {" | ".join(labels)} |', '|' + ' --- |' * (len(labels) + 2)]
    for what, goal, found in rows:
        out.append(
            f'| {what} | {goal} | '
            + ' | '.join(': '.join(found[x]) if x in found else '-' for x in labels)
            + ' |'
        )
    return '\n'.join(out)


def goal_table(rows):
    return '\n'.join(
        ['| goal for | goal | ours | |', '| --- | --- | --- | --- |']
        + ['| ' + ' | '.join(r) + ' |' for r in rows]
    )
