#!/usr/bin/env python3
"""Draws the rooms of src/ and their includes, as docs/design/rooms.svg.

    scripts/draw_rooms.py            writes the picture
    scripts/draw_rooms.py --check    fails if docs/design/rooms.svg does not match the includes

An arrow goes from a room to one that it includes. An arrow that other arrows imply is left out: cli
includes base, and so does nearly every room below cli. The layout is Sugiyama's: a room's layer is
its longest path to the bottom, long arrows pass through places of their own in the layers between,
and sweeps over the layers put rooms near what they are joined to (K. Sugiyama, S. Tagawa, M. Toda,
IEEE Trans. Syst. Man Cybern. 11 (1981) 109-125).
"""
import html
import pathlib
import re
import sys

TOP = pathlib.Path(__file__).resolve().parent.parent
PICTURE = TOP / "docs" / "design" / "rooms.svg"
WIDTH, LAYER_HEIGHT, BOX_HEIGHT, MARGIN = 1000, 84, 44, 20
BOX_WIDTH, PLACE_WIDTH, GAP = 150, 12, 22
LETTER, BESIDE = 6.2, 9  # pixels: of a label of 10 in wide fonts, and free beside it


def read_rooms():
    """Returns {room: its purpose}, from the top down."""
    rooms = {}
    for line in (TOP / "src" / "rooms.txt").read_text().splitlines():
        if line and not line.startswith("#"):
            name, text = line.split(None, 1)
            rooms[name] = text
    return rooms


def read_includes(rooms):
    """Returns {(from, to): number of include lines}."""
    counts = {}
    order = {room: i for i, room in enumerate(rooms)}
    for path in sorted((TOP / "src").rglob("*.[ch]")):
        room = path.parent.relative_to(TOP / "src").as_posix()
        while room not in rooms and "/" in room:
            room = room.rsplit("/", 1)[0]
        for target in re.findall(r'^ *# *include +"([^"]+)/[^/"]+"', path.read_text(), re.M):
            while target not in rooms and "/" in target:
                target = target.rsplit("/", 1)[0]
            if target in order and order[target] < order[room]:
                sys.exit(f"{path.relative_to(TOP)} includes {target}, which is above {room}")
            if target in rooms and target != room:
                counts[room, target] = counts.get((room, target), 0) + 1
    return counts


def reduce_arrows(rooms, counts):
    """Leaves out each arrow that a longer path implies."""
    below = {room: {b for a, b in counts if a == room} for room in rooms}

    def reaches(a, b):
        return any(c == b or reaches(c, b) for c in below[a])

    return [(a, b) for a, b in counts if not any(c != b and reaches(c, b) for c in below[a])]


def find_layers(rooms, arrows):
    layer = {}
    for room in reversed(list(rooms)):
        layer[room] = 1 + max((layer[b] for a, b in arrows if a == room), default=-1)
    return layer


def insert_places(rooms, arrows, layer):
    """Returns rows of nodes from the top down, and arrows as chains of nodes, one a layer."""
    highest = max(layer.values())
    rows = [[room for room in rooms if layer[room] == highest - i] for i in range(highest + 1)]
    chains = []
    for a, b in arrows:
        chain = [a] + [(a, b, i) for i in range(layer[a] - 1, layer[b], -1)] + [b]
        for place in chain[1:-1]:
            rows[highest - place[2]].append(place)
        chains.append(chain)
    return rows, chains


def is_room(node):
    return isinstance(node, str)


def order_rows(rows, chains):
    """Sorts each row by the mean position of its neighbours, sweeping down and up."""
    joined = {}
    for chain in chains:
        for above, under in zip(chain, chain[1:]):
            joined.setdefault(above, []).append(under)
            joined.setdefault(under, []).append(above)
    for sweep in range(24):
        order = range(1, len(rows)) if sweep % 2 == 0 else range(len(rows) - 2, -1, -1)
        for i in order:
            near = rows[i - 1] if sweep % 2 == 0 else rows[i + 1]
            place = {node: (k + 0.5) / len(near) for k, node in enumerate(near)}
            own = {node: (k + 0.5) / len(rows[i]) for k, node in enumerate(rows[i])}

            def mean(node):
                at = [place[other] for other in joined.get(node, []) if other in place]
                return sum(at) / len(at) if at else own[node]

            rows[i].sort(key=lambda node: (mean(node), str(node)))


def label_of(rooms, room):
    return rooms[room].split(":")[0]


def box_width(rooms, room):
    """At least as wide as the label."""
    return max(BOX_WIDTH, round(LETTER * len(label_of(rooms, room)) + 2 * BESIDE))


def find_centres(rooms, rows):
    """Returns {node: (x, y)}, each row spread over the width, and the width, which the widest row may exceed."""
    widths = [[box_width(rooms, node) if is_room(node) else PLACE_WIDTH for node in row] for row in rows]
    total = max([WIDTH] + [2 * MARGIN + sum(w) + GAP * (len(w) - 1) for w in widths])
    centres = {}
    for i, row in enumerate(rows):
        gap = max(GAP, (total - 2 * MARGIN - sum(widths[i])) / (len(row) + 1))
        x = (total - sum(widths[i]) - gap * (len(row) - 1)) / 2
        for node, width in zip(row, widths[i]):
            centres[node] = (x + width / 2, MARGIN + BOX_HEIGHT / 2 + i * LAYER_HEIGHT)
            x += width + gap
    return centres, total


def draw_arrow(chain, centres, count):
    points = [centres[node] for node in chain]
    x, y = points[0]
    path = f"M{x:.0f},{y + BOX_HEIGHT / 2:.0f}"
    y += BOX_HEIGHT / 2
    for node, (to_x, to_y) in zip(chain[1:], points[1:]):
        end_y = to_y - BOX_HEIGHT / 2
        middle = (y + end_y) / 2
        path += f" C{x:.0f},{middle:.0f} {to_x:.0f},{middle:.0f} {to_x:.0f},{end_y:.0f}"
        x, y = to_x, end_y
        if not is_room(node):
            y = to_y + BOX_HEIGHT / 2
            path += f" L{x:.0f},{y:.0f}"
    includes = "1 include" if count == 1 else f"{count} includes"
    title = f"<title>{chain[0]} to {chain[-1]}: {includes}</title>"
    return f'<path d="{path}" marker-end="url(#head)">{title}</path>'


def draw(rooms):
    counts = read_includes(rooms)
    arrows = reduce_arrows(rooms, counts)
    rows, chains = insert_places(rooms, arrows, find_layers(rooms, arrows))
    order_rows(rows, chains)
    centres, total = find_centres(rooms, rows)
    height = 2 * MARGIN + BOX_HEIGHT + (len(rows) - 1) * LAYER_HEIGHT
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {total} {height}" '
        f'font-family="sans-serif">',
        "<title>The rooms of src/ and what each includes</title>",
        "<!-- drawn by scripts/draw_rooms.py -->",
        '<defs><marker id="head" markerWidth="8" markerHeight="8" refX="7" refY="4" orient="auto">'
        '<path d="M0,1 L7,4 L0,7 z" fill="#667"/></marker></defs>',
        f'<rect width="{total}" height="{height}" fill="#fff"/>',
        '<g fill="none" stroke="#99a" stroke-width="1.3">',
    ]
    out += [draw_arrow(chain, centres, counts[chain[0], chain[-1]]) for chain in chains]
    out += ["</g>", '<g text-anchor="middle">']
    for room, text in rooms.items():
        x, y = centres[room]
        width = box_width(rooms, room)
        out.append(
            f'<g><title>{html.escape(text)}</title><rect x="{x - width / 2:.0f}" '
            f'y="{y - BOX_HEIGHT / 2:.0f}" width="{width}" height="{BOX_HEIGHT}" rx="6" '
            f'fill="#eef3fa" stroke="#5577aa"/><text x="{x:.0f}" y="{y - 3:.0f}" font-size="15" '
            f'font-weight="bold" fill="#223">{room}</text><text x="{x:.0f}" y="{y + 13:.0f}" '
            f'font-size="10" fill="#445">{html.escape(label_of(rooms, room))}</text></g>'
        )
    out += ["</g>", "</svg>", ""]
    return "\n".join(out)


def main():
    picture = draw(read_rooms())
    if sys.argv[1:] == ["--check"]:
        if not PICTURE.exists() or PICTURE.read_text() != picture:
            sys.exit("docs/design/rooms.svg does not match the includes; run scripts/draw_rooms.py")
        print("docs/design/rooms.svg matches the includes")
    else:
        PICTURE.write_text(picture)


if __name__ == "__main__":
    main()
